# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.knowledge.folder import FolderRetriever as FolderRetriever
from replan.knowledge.langchain import (
    LangChainRetriever as LangChainRetriever,
    VectorStoreRetriever as VectorStoreRetriever,
)
from replan.ports.retriever import (
    Retriever as Retriever,
    SearchRequest as SearchRequest,
    SearchResponse as SearchResponse,
)
from replan.state.knowledge import Chunk as Chunk, Source as Source
