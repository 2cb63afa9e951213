"""Pictures of plans."""

from homdp_ppl.core.tree_picture import draw_tree
from homdp_ppl.planners import history_tree
from tests.worlds import world


def test_dollar_signs_are_not_parsed_as_formulas():
    tree = history_tree()(world("tiger").pomdp).tree(1)
    for node, data in tree.nodes(data=True):
        data["action"] = "from $5 to $9" if node else ""
    axes = draw_tree(tree, "prices")
    axes.figure.canvas.draw()
    written = [
        text for text in [*axes.texts, *axes.get_legend().get_texts()] if "$" in text.get_text()
    ]
    assert len(written) == 3
    assert not any(text.get_parse_math() for text in written)
