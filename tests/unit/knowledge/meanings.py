"""A model of embeddings whose meanings can be read."""

from langchain_core.embeddings import Embeddings


class Meanings(Embeddings):
    """Knows three meanings by their words; a text has those of its words."""

    model = "meanings"
    topics = ({"car", "automobile", "motor"}, {"honey", "bee", "nectar"}, {"sea", "ocean", "wave"})

    def __init__(self):
        self.documents = []
        self.queries = []

    def embed_documents(self, texts):
        self.documents += texts
        return [self.vector(text) for text in texts]

    def embed_query(self, text):
        self.queries.append(text)
        return self.vector(text)

    def vector(self, text):
        words = {word.strip(".?").casefold() for word in text.split()}
        return [float(len(words & topic)) for topic in self.topics]
