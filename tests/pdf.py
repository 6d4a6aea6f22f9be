"""A PDF with text, written by hand: what a parser reads of it is known."""

from __future__ import annotations


def pdf(*pages: str, title: str = "") -> bytes:
    """Return a PDF whose pages have these lines."""
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    for number, page in enumerate(pages):
        lines = " T* ".join(f"({line}) Tj" for line in page.split("\n"))
        stream = f"BT /F1 12 Tf 72 720 Td 14 TL {lines} ET"
        resources = "<< /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources {resources} /Contents {6 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
