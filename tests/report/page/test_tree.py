"""The policy in words, as lists that unfold."""

import networkx as nx

from homdp_ppl.report.page.tree import unfolding


def test_decisions_are_nested_and_escaped():
    tree = nx.DiGraph()
    tree.add_node(0, step=0, action="", value=2.0, probability=1.0)
    tree.add_node(1, step=1, action="listen", value=1.5, probability=0.4)
    tree.add_node(2, step=1, action="<b>open", value=2.5, probability=0.6)
    tree.add_node(3, step=2, action="open", value=1.0, probability=0.1)
    for parent, child, seen in ((0, 1, "growl"), (0, 2, "silence"), (1, 3, "again")):
        tree.add_edge(parent, child, observation=seen)
    made = unfolding(tree, "Decisions")
    assert made.count("<details>") == 2  # the start, and the decision with another one below
    assert made.index("silence, 60%: <strong>&lt;b&gt;open") < made.index("growl, 40%")
    assert "again, 25%: <strong>open</strong> (expected from here: 1)" in made
