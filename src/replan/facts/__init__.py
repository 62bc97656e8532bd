"""Facts that outlive a conversation: their owners, their storage, and the tools for them."""
