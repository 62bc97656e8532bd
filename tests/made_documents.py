"""PDF and DOCX for tests."""

import io
import zipfile

import docx


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text on each page; an empty one has a page without text."""
    count = len(pages)
    kids = " ".join(f"{number} 0 R" for number in range(4, 4 + count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 600 800]"
    objects += [
        f"<< /Type /Page /Parent 2 0 R {resources} /Contents {4 + count + at} 0 R >>"
        for at in range(count)
    ]
    for text in pages:
        shown = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    body, places = "%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{each}\nendobj\n"
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{rows}{end}".encode("latin-1")


def word(*paragraphs: str | tuple[str, ...]) -> bytes:
    """A DOCX: text is a paragraph, `# ` before it makes a heading, a tuple is a row of a table."""
    document = docx.Document()
    for each in paragraphs:
        if isinstance(each, tuple):
            cells = document.add_table(rows=1, cols=len(each)).rows[0].cells
            for cell, text in zip(cells, each, strict=True):
                cell.text = text
        elif each.startswith("# "):
            document.add_heading(each[2:])
        else:
            document.add_paragraph(each)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def word_of(content: bytes, *, claimed: int | None = None) -> bytes:
    """A DOCX whose body is this XML, and has so many bytes by its own word."""
    made, plain = io.BytesIO(), word("x")
    with (
        zipfile.ZipFile(io.BytesIO(plain)) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.infolist():
            is_body = part.filename == "word/document.xml"
            new.writestr(part.filename, content if is_body else old.read(part))
            if is_body and claimed is not None:
                new.getinfo(part.filename).file_size = claimed
    return made.getvalue()
