"""What the linguistic questions share: held-out choices, claims, columns and notes of tables."""

from headscope.claims.question import Option

PIECES = Option("mean", ("mean", "first", "max"))
MEASURE = Option("attention", ("attention", "weighted_norm"))
