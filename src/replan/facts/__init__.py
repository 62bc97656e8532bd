"""Facts that outlive a conversation: whose they are, how they are kept, the tools for them."""
