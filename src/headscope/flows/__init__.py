"""How does information flow from token to token, through a layer and from layer to layer?"""
