"""The checks that every mixer must pass, ours and a user's own: one file a group, `suite.py` lists them all."""
