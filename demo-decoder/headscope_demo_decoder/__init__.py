"""The weights, configuration and tokenizer of headscope's `demo-decoder`, in the folder `model`."""
