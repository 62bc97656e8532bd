"""The words of replies: keys, labels and names, in all languages."""
