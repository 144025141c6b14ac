"""What every other room uses: the nouns, the errors, the settings, the counting of tokens."""
