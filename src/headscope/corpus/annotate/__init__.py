"""How does a parser cut, tag and parse plain text, and where is what it found kept?"""
