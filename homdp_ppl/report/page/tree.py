"""A policy in words: a list of decisions that unfolds, without a script."""

from __future__ import annotations

import networkx as nx

from homdp_ppl.report.page.html import Html, number, tag, text


def unfolding(tree: nx.DiGraph, summary: str) -> Html:
    """The decisions of a tree as nested lists; each list opens and closes.

    Parameters
    ----------
    tree
        The recorded tree of a policy; see exhibits.py.
    summary
        The words of the outermost list.
    """
    return tag("div", _below(tree, 0, text(summary)), class_="unfold")


def _below(tree: nx.DiGraph, node: int, words: Html) -> Html:
    children = sorted(tree.successors(node), key=lambda child: -tree.nodes[child]["probability"])
    if not children:
        return tag("p", words)
    items = [tag("li", _below(tree, child, _words(tree, node, child))) for child in children]
    return tag("details", tag("summary", words), tag("ul", *items))


def _words(tree: nx.DiGraph, parent: int, child: int) -> Html:
    data, seen = tree.nodes[child], tree.edges[parent, child]["observation"]
    before = tree.nodes[parent]["probability"]
    share = data["probability"] / before if before > 0 else 0.0
    action = tag("strong", text(data["action"]))
    rest = f" (expected from here: {number(data['value'])})"
    return Html(text(f"{seen}, {share:.0%}: ") + action + text(rest))
