"""Building blocks of HTML."""

from homdp_ppl.report.page.html import number, tag, text


def test_elements_are_escaped_and_numbers_are_rounded():
    assert tag("p", text("<&>"), aria_label='"') == '<p aria-label="&quot;">&lt;&amp;&gt;</p>'
    assert [number(x) for x in (0.12345, -2.5, 1e9, float("inf"))] == [
        "0.123",
        "-2.5",
        "1e+09",
        "∞",
    ]
