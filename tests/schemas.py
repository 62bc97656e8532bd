"""JSON schemas that are small and become large where their references are written out."""


def doubling_schema(levels, *, key="$defs", fan=2, inner="properties", **beside):
    """A schema whose definitions refer `fan` times each to the one below."""

    def level(number):
        refs = [{"$ref": f"#/{key}/d{number}", **beside} for _ in range(fan)]
        named = {f"p{place}": ref for place, ref in enumerate(refs)}
        return {"type": "object", inner: named if inner == "properties" else refs}

    below = {f"d{number}": level(number - 1) for number in range(1, levels + 1)}
    last = {"type": "object", "properties": {"a": {"type": "string"}}}
    top = {"p": {"$ref": f"#/{key}/d{levels}"}}
    return {"type": "object", "properties": top, key: {"d0": last, **below}}
