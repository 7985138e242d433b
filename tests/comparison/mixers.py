"""Mixers of a user's own, as the comparison meets them: read from a file, by other processes."""

import os

import torch
from torch import nn

from headstock.errors import UserError
from headstock.model.attention import masked_softmax
from headstock.model.mixers.base import HeadSizes, Mixer, ScoreMixer


class Sharp(ScoreMixer):
    """Softmax at half the temperature."""

    weights_are = "normalised"

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(2 * scores_bhqk, visible_bhqk)


class Uncounted(Sharp):
    """Trains a number that it does not own up to."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.sharpness = nn.Parameter(torch.ones(()))


class Talkative(Sharp):
    """Prints, which must not disturb what the processes say to each other."""

    def weigh(self, scores_bhqk, visible_bhqk):
        print('{"event": "done"}')
        return super().weigh(scores_bhqk, visible_bhqk)


class Peeks(Sharp):
    """Forgets the mask, and so sees the answer."""

    def weigh(self, scores_bhqk, visible_bhqk):
        return scores_bhqk.softmax(-1)


class Raises(Sharp):
    """Fails in training, with a reason."""

    def weigh(self, scores_bhqk, visible_bhqk):
        raise RuntimeError("no weights today")


class Dies(Sharp):
    """Takes its whole process with it."""

    def weigh(self, scores_bhqk, visible_bhqk):
        os._exit(9)


class Unbuildable(Sharp):
    """Fails before anything is trained."""

    def __init__(self, config, layer):
        raise RuntimeError("no mixer today")


class Averageless(Mixer):
    """Mixes nothing, and has no weights to show."""

    weights_are = "none"

    def forward(self, x_bqm, frame):
        return x_bqm

    def weights(self, x_bqm, frame):
        raise UserError("there is no average here")

    @classmethod
    def sizes(cls, config):
        return HeadSizes(query_heads=0, key_heads=0, key_size=0, value_heads=0, value_size=0, output_heads=0)


class Explodes(Sharp):
    """Gives a loss that is no number."""

    def weigh(self, scores_bhqk, visible_bhqk):
        return super().weigh(scores_bhqk, visible_bhqk) * torch.nan
