"""Items that outlive runs and threads: LangGraph's store on the storage's database."""
