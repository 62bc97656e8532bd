"""The names that programs read: schemas, fields and values of the OpenAPI document."""

from served import DESCRIBED

SCHEMAS = DESCRIBED["components"]["schemas"]


def test_a_value_of_an_enumeration_has_no_blank():
    enumerations = [
        (name, field, value)
        for name, schema in SCHEMAS.items()
        for field, about in schema.get("properties", {}).items()
        for value in about.get("enum", ())
        if " " in str(value)
    ]
    assert enumerations == []
    assert "unknown_outcome" in SCHEMAS["PendingQuestion"]["properties"]["kind"]["enum"]
