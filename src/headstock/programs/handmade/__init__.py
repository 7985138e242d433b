"""Models made by hand, weight by weight: a builder, two models that were made with it, and what they cost.

from headstock import programs as p
p.handmade.aab.model()          # a transformer that predicts (aab)*
print(p.handmade.costs.costs().table())
"""

from headstock.programs.handmade import aab, ab, builder, costs

__all__ = ["aab", "ab", "builder", "costs"]
