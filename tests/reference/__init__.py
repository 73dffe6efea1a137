"""What should the product's numbers be? Independent float64 versions, straight from the papers.

Nothing here imports headscope. Loops over examples, heads and tokens are wanted: slow and plain.
extraction turns a model and token ids into arrays; every other file works on lists of arrays,
one per example (one unpadded model input).

Words used in all files, indices 0-based:
attention   [layer, head, query, key]   after softmax, rows sum to 1
f           [layer, head, token, d]     f^h(x) = (x W_V^h + b_V^h) W_O^h, without b_O
x           [layer, token, d]           input of the attention block
category    [token] bool                whether a token is [CLS], [SEP], punctuation, other
"""
