"""Small .POMDP files that several tests use."""

TIGER = """\
# The classic tiger: it is heard only after listening.
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: hear-left hear-right

T: listen identity
T: open-left uniform
T: open-right uniform

O: listen
0.85 0.15
0.15 0.85
O: open-left uniform
O: open-right uniform

R: listen : * : * : * -1
R: open-left : tiger-left : * : * -100
R: open-left : tiger-right : * : * 10
R: open-right : tiger-left : * : * 10
R: open-right : tiger-right : * : * -100
"""

SLIPPERY = """\
observations: 2 discount: 1
states: 3
values: cost
actions: stay go
start include: 0 1
T: stay identity
T: go : * : 0 0.5   T: go : 0 : 1 .5
T: go : 1 : 2 5e-1
T: go : 2 reset
O: * : * uniform
O: * : 2 0.25 0.75
R: * : 2 : * : * 3.5
R: go : 0 : 1 : * 2
R: go : 1 : 2 1 -1
R: stay : 0
0 0
0 0
4 8
"""

PLAIN = """\
states: 2
actions: 2
observations: 2
start: 1
T: *
0.9 0.1
0.2 0.8
O: *
0.7 0.3
0.4 0.6
R: 0 : 1 : * : * 0.5
R: 1 : 0 : * : * 1
"""
