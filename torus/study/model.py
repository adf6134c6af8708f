#!/usr/bin/env python3
"""Profile `paper`: time of a collective of the measured code on Tofu-D, from the machine and from what the code does in a call.

    CALIBRATION=FILE python model.py fit    fit the parameters to measurements (deterministic), write params.json
    python model.py tables     accuracy, leave-one-shape-out, regret, intervals, standard errors -> TABLES.md
    python model.py ablate     what each mechanism buys -> ABLATION.md
    python model.py predict 64x64 allreduce bine-b_cont 1048576 0 6

Parts: 1 parameters, 2 network (folds, routes, link loads), 3 event simulation of a representative rank,
4 programs of the uTofu algorithms, 5 algorithms over MPI, 6 fit, 7 tables.
Units: microseconds and bytes. Equations: MODEL.md.
"""
import collections
import csv
import json
import math
import os
import sys
from functools import lru_cache

import numpy as np
from numba import njit

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get('CALIBRATION', 'calibration.csv')

# ---------------------------------------------------------------------------------------------------------------- 1 parameters
# name, unit, start, kind, what it is
PARAMS = [
    # the network
    ('byte', 'us/B', 1 / 6335, 'set', 'one TNI, one link, one direction: set by the plain one-port rows (bcast, reduce: equal to 0.3 %)'),
    ('lat', 'us', 1.57, 'fit', 'end of a put at the sender to its notice at a neighbour, seen by a polling thread'),
    ('hop', 'us', 0.1, 'lit', 'each hop more (Tofu-D: about 0.1 us; the data do not determine it)'),
    ('post', 'us', 0.2, 'lit', 'processor time of one put (utofu_set_vcq_id_path and utofu_put; the data do not determine it beside lat)'),
    ('poll', 'us', 0.31, 'fit', 'taking one notice from a queue'),
    ('ack', 'us', 0.62, 'fit', 'end of a put to its completion notice at the sender'),
    # the processor and its memory
    ('fold1', 'us/B', 1 / 17800, 'fit', 'a += b in one thread, per byte of the result'),
    ('rampF', 'us', 0.255, 'fit', 'a fold of x bytes costs rampF sqrt(min(x/256, 256)) more: cold streams do not start at full speed'),
    ('copy1', 'us/B', 1 / 24000, 'fit', 'memcpy in one thread, per byte'),
    ('memN', 'us/B', 1 / 65800, 'fit', 'memory of the node when many threads fold or copy, per byte'),
    ('block', 'us', 0.02, 'fit', 'one memcpy of a permutation'),
    ('rampP', 'us', 0.053, 'fit', 'with several ports a permuted piece of x bytes costs rampP sqrt(min(x/256, 128)) more'),
    # the language's runtime
    ('alloc1', 'us', 0.287, 'fit', 'one heap operation (the profiling timer copies its name at every reset), one thread'),
    ('allocP', 'us', 0.88, 'fit', 'the same with several threads: the heap has one lock, operations of all ports come one after the other'),
    ('sleep', 'us', 3.0, 'fit', 'a thread that finds the heap locked sleeps and wakes'),
    ('ctor', 'us', 2.5, 'fit', 'constructing and destroying a timer with its string stream; serial like the heap'),
    ('fork0', 'us', 2.7, 'fit', 'opening and closing a parallel region'),
    ('forkP', 'us', 1.66, 'fit', 'each thread more'),
    ('crit', 'us', 0.62, 'fit', 'entering and leaving the critical section around a fold, several threads'),
    ('pfork', 'us', 10.65, 'fit', "starting the compiler's parallel loop for a fold outside a parallel region (or in one of one thread)"),
    # MPI
    ('mpi', 'us', 2.89, 'fit', 'one message of MPI: send and receive'),
    ('eager', 'us/B', 1 / 5740, 'fit', 'copies of an eager message, per byte, both ends together'),
    ('rndv', 'us', 11.35, 'fit', 'a message above the eager limit: handshake'),
    # tables made in every call
    ('entry', 'us', 0.005, 'fit', 'one entry of a table of ranks x ports'),
    ('base', 'us', 2.63, 'fit', 'entering the library, leaving the barrier before'),
]
NAMES = [p[0] for p in PARAMS]
START = {p[0]: p[2] for p in PARAMS}
FREE = [p[0] for p in PARAMS if p[3] == 'fit']
IX = {n: i for i, n in enumerate(NAMES)}
(BYTE, LAT, HOP, POST, POLL, ACK, FOLD1, RAMPF, COPY1, MEMN, BLOCK, RAMPP, ALLOC1, ALLOCP, SLEEP, CTOR, FORK0, FORKP, CRIT, PFORK,
 MPI, EAGER, RNDV, ENTRY, BASE) = range(len(NAMES))
RATES = ('byte', 'fold1', 'copy1', 'memN', 'eager')

# facts, not fitted
MAX_PUT = 16777215               # largest put of uTofu
PREALLOCATED = 1.5 * 2**30       # temporary memory registered beforehand
PARALLEL_FOLD = 1200             # elements from which the compiler's loop takes a team (data: between 1,024 and 1,365)
EAGER_LIMIT = 65536              # MPI
SELF_PUT = 4                     # a put to oneself runs at a quarter of the link rate (allgather cont_send)
GROUPS = 24                      # a step's segments are played in at most so many groups

SWITCH = {}                      # mechanisms turned off for the ablation


# ------------------------------------------------------------------------------------------------------------------- 2 network
RHO = [1, -1, 3, -5, 11, -21, 43, -85, 171, -341, 683, -1365]


def fold(shape):
    """Boxes of physical axes. A logical dimension is a closed tour through its box.

    3-D: x and z each with an axis of two (hairpin); the middle one as a ring of its own (its second axis has three, and a
    3 x n grid has no such hairpin). Seen in the data: bine's step of distance 3 loads one dimension of 8 twice and the other two
    once; plain and mirrored trees share links when they send far first, and do not when they receive.
    2-D: three axes a dimension, as a ladder (see `tour`). Not in the data; from the notes."""
    if SWITCH.get('nofold'):
        return tuple((d,) for d in shape)
    out = []
    for k, d in enumerate(shape):
        if d <= 2:
            out.append((d,))
        elif len(shape) >= 3:
            out.append((2, 2) if d == 4 else (d,) if k == 1 else (d // 2, 2))
        else:
            out.append((d // 4, 2, 2) if d >= 16 else (d // 2, 2))
    return tuple(out)


def tour(box):
    """Positions along the logical dimension. Ring; hairpin (out on one row, back on the other); ladder (out zigzagging over two
    rows, back the same way on the other plane)."""
    if len(box) == 1:
        return [(i,) for i in range(box[0])]
    n = box[0]
    if len(box) == 2:
        return [(i, 0) for i in range(n)] + [(i, 1) for i in reversed(range(n))]
    up = [(i, j if i % 2 == 0 else 1 - j, 0) for i in range(n) for j in (0, 1)]
    return up + [(i, j, 1) for i, j, _ in reversed(up)]


def route(a, b, box):
    """Directed links between two positions: dimension order, the long axis first. Only a ring has a wrap link."""
    cur, links = list(a), []
    for ax, n in enumerate(box):
        while cur[ax] != b[ax]:
            step = 1 if b[ax] > cur[ax] else -1
            if len(box) == 1 and abs(b[ax] - cur[ax]) * 2 > n:
                step = -step
            links.append((tuple(cur), ax, step))
            cur[ax] = (cur[ax] + step) % n
    return links


def steps_of(d):
    return max(0, int(d - 1).bit_length())


def peer(family, a, s, d, mirrored):
    off = (a ^ (1 << s)) - a if family == 'recdoub' else (RHO[s] if a % 2 == 0 else -RHO[s])
    return (a + (-off if mirrored else off)) % d


def mirrored(port, D):
    return int(port >= 3) if D == 3 else int(port in (2, 3)) if D == 2 else port % 2


def port_steps(port, shape):
    """(dimension, 1-D step) of each global step: round robin from the port's own dimension."""
    D = len(shape)
    left = [steps_of(d) for d in shape]
    nxt, k, out = [0] * D, port % D, []
    while sum(left) > sum(nxt):
        if nxt[k] < left[k]:
            out.append((k, nxt[k]))
            nxt[k] += 1
        k = (k + 1) % D
    return out


@lru_cache(None)
def messages(family, d, kind):
    """Messages of each 1-D step, plain and mirrored. kind: all (every rank), ring, inc / dec (tree from 0, near / far first),
    ginc / gdec (gather: the tree backwards)."""
    out, S = {}, steps_of(d)
    for m in (0, 1):
        if kind == 'ring':
            out[(0, m)] = [(a, (a + (1, -1)[m]) % d) for a in range(d)]
            continue
        have = [0]
        for s in reversed(range(S)) if kind in ('dec', 'ginc') else range(S):
            out[(s, m)] = [(a, peer(family, a, s, d, m)) for a in (range(d) if kind == 'all' else list(have))]
            if kind != 'all':
                have += [b for _, b in out[(s, m)]]
                if kind[0] == 'g':
                    out[(s, m)] = [(b, a) for a, b in out[(s, m)]]
    return out


@lru_cache(None)
def step_loads(family, d, box, kind):
    """{(step, mirrored): (hops, {class: messages})} and the number of classes.

    A class is a set of links with the same load in every step; a class that another one dominates in every step is left out.
    Every line of the dimension does the same, so one line stands for the machine."""
    if d < 2:
        return {}, 0
    pos, msg = tour(box), messages(family, d, kind)
    keys, cols, hops = sorted(msg), {}, {}
    for i, k in enumerate(keys):
        hops[k] = 0
        for a, b in msg[k]:
            r = route(pos[a], pos[b], box)
            hops[k] = max(hops[k], len(r))
            for link in r:
                cols.setdefault(link, np.zeros(len(keys), int))[i] += 1
    keep = []
    for v in sorted(set(tuple(c) for c in cols.values()), reverse=True):
        if not any(all(x <= y for x, y in zip(v, w)) for w in keep):
            keep.append(v)
    return {k: (hops[k], {c: int(v[i]) for c, v in enumerate(keep) if v[i]}) for i, k in enumerate(keys)}, len(keep)


@lru_cache(None)
def pair_load(shape, pairs):
    """Busiest link and longest path of arbitrary messages between ranks (row-major)."""
    boxes = fold(shape)
    tours = [tour(b) for b in boxes]
    load, longest = {}, 1
    for x, y in pairs:
        if x == y:
            load[None] = SELF_PUT
            continue
        a, b = ([int(v) for v in np.unravel_index(z, shape)] for z in (x, y))
        hops = 0
        for k in range(len(shape)):
            for link in route(tours[k][a[k]], tours[k][b[k]], boxes[k]):
                key = (tuple(a[:k]) + tuple(a[k + 1:]), k, link)
                load[key] = load.get(key, 0) + 1
                hops += 1
            a[k] = b[k]
        longest = max(longest, hops)
    return max(load.values(), default=1), longest


@lru_cache(None)
def permutation_load(family, shape):
    """Every rank sends one block to the rank whose place it has in the order of the tree from 0 (allgather cont_send)."""
    steps, place, nxt = port_steps(0, shape), {}, [int(np.prod(shape)) - 1]

    def walk(c, i):
        for j in range(i, len(steps)):
            k, s = steps[j]
            q = list(c)
            q[k] = peer(family, c[k], s, shape[k], 0)
            walk(q, j + 1)
        place[int(np.ravel_multi_index(c, shape))] = nxt[0]
        nxt[0] -= 1
    walk([0] * len(shape), 0)
    return pair_load(shape, tuple((to, r) for r, to in place.items()))


class Loads:
    """All steps' link loads, one row each; row 0 crosses nothing shared."""

    def __init__(self):
        self.ptr, self.cls, self.val, self.hop, self.seen = [0, 0], [], [], [1.0], {}

    def row(self, hops, classes):
        if SWITCH.get('noload'):
            classes = {}
        key = (hops, tuple(sorted(classes.items())))
        if key not in self.seen:
            self.seen[key] = len(self.hop)
            for c, v in sorted(classes.items()):
                self.cls.append(c)
                self.val.append(1.0 if SWITCH.get('load1') else float(v))
            self.ptr.append(len(self.cls))
            self.hop.append(float(hops))
        return self.seen[key]

    def arrays(self):
        return (np.array(self.ptr, np.int64), np.array(self.cls + [0], np.int64), np.array(self.val + [0.0]), np.array(self.hop))


LOADS = Loads()

# ---------------------------------------------------------------------------------------------------------------- 3 simulation
# operation: arguments a, b, c
(CPU,      # a times parameter b
 HEAP,     # a heap operations and b timers, under the heap's lock
 PUT,      # b puts of together a bytes over the links of row c; flows of a port leave one after the other
 RECV,     # wait for the peer's flow that answers our b-th last one
 SEND,     # wait for the completion of our last flow, take a notices
 FOLD,     # fold a bytes in b pieces in the critical section
 PFOLD,    # fold a bytes in b pieces: c = 1 by the compiler's team, 0 in this thread
 COPY,     # copy a bytes in b pieces
 READY,    # empty put: ready to receive
 RWAIT,    # wait for the peer's ready (b: another peer than the data's), row c
 PACE,     # go on when our last flow has left
 CHAIN,    # go on as the rank that has received our last flow
 JOIN,     # end of a parallel region and start of the next
 ) = range(13)


@njit(cache=True)
def take_heap(t, heap, n, a, b, par):
    """-> (thread's time, time from which the heap is free). One lock; who has to wait sleeps, and wakes late."""
    if n == 1:
        return t + a * par[ALLOC1] + b * par[CTOR], heap
    start = max(t, heap)
    free = start + a * par[ALLOCP] + b * par[CTOR]
    return free + (par[SLEEP] if heap > t else 0.0), free


@njit(cache=True)
def fold_time(a, b, par):
    """One thread; every piece starts cold streams."""
    return a * par[FOLD1] + b * (par[CRIT] + par[RAMPF] * math.sqrt(min(a / b / 256.0, 256.0)))


@njit(cache=True)
def copy_time(n, a, b, par):
    ramp = 0.0 if n == 1 else par[RAMPP]
    x = a * max(par[COPY1], par[MEMN] * n)
    return x + b * (par[BLOCK] + ramp * math.sqrt(min(a / b / 256.0, 128.0))) if b > 0 else x


@njit(cache=True)
def share_links(n, active, head, row, lptr, lcls, lval, tot, rate):
    """Max-min sharing where every flow of a step loads its links alike: a flow has the rate of its busiest link."""
    tot[:] = 0.0
    for q in range(n):
        if active[q]:
            c = row[q, head[q]]
            for k in range(lptr[c], lptr[c + 1]):
                tot[lcls[k]] += lval[k]
    for q in range(n):
        if active[q]:
            c = row[q, head[q]]
            m = 1.0
            for k in range(lptr[c], lptr[c + 1]):
                m = max(m, tot[lcls[k]])
            rate[q] = 1.0 / m


@njit(cache=True)
def play(start, end, op, A, B, C, n, nput, lptr, lcls, lval, lhop, ncls, order, par):
    """Time from the first fork to the end of the last port of a representative rank.

    Other ranks do the same, but the order in which their ports take the locks differs: what comes from the peer on a port left
    there when another one of our ports sent (`order` = 1; 0: the same port)."""
    t = np.zeros(n)
    pc = start.copy()
    joined = np.zeros(n, np.bool_)
    cnt = np.zeros(n, np.int64)                      # flows posted
    head = np.zeros(n, np.int64)                     # first flow that has not left
    work = np.zeros((n, nput)); posted = np.zeros((n, nput))
    s = np.full((n, nput), -1.0); e = np.full((n, nput), -1.0)
    row = np.zeros((n, nput), np.int64)
    ready = np.full((n, nput + 1), -1.0); nr = np.zeros(n, np.int64)
    active = np.zeros(n, np.bool_)
    rem = np.zeros(n); rate = np.zeros(n)
    tot = np.zeros(max(ncls, 1))
    now = 0.0; heap = 0.0; section = 0.0
    while True:
        p = -1; best = 1e300
        for q in range(n):                           # the runnable thread that is first
            if pc[q] >= end[q] or joined[q]:
                continue
            i = pc[q]; o = op[i]
            if o == RECV:
                k = cnt[q] - 1 - int(B[i])
                if e[q, k] < 0 or s[(q + order * (k + 1)) % n, k] < 0:
                    continue
            elif o == SEND or o == PACE or o == CHAIN:
                if cnt[q] > 0 and e[q, cnt[q] - 1] < 0:
                    continue
            elif o == RWAIT:
                k = nr[q] - 1
                if ready[(q + order * (k + 1 + int(B[i]))) % n, k] < 0:
                    continue
            if t[q] < best:
                best = t[q]; p = q
        f = -1; tf = 1e300
        for q in range(n):                           # the flow that starts or ends first
            if active[q]:
                x = now + rem[q] / rate[q]
            elif head[q] < cnt[q]:
                x = max(posted[q, head[q]], now)
            else:
                continue
            if x < tf:
                tf = x; f = q
        if f >= 0 and tf <= best:
            for q in range(n):
                if active[q]:
                    rem[q] -= (tf - now) * rate[q]
            now = tf
            if active[f]:
                active[f] = False
                e[f, head[f]] = now
                head[f] += 1
            else:
                active[f] = True
                rem[f] = work[f, head[f]]
                s[f, head[f]] = now
            share_links(n, active, head, row, lptr, lcls, lval, tot, rate)
            continue
        if p < 0:
            if not joined.any():
                break
            x = t.max() + par[FORK0] + par[FORKP] * (n - 1)
            for q in range(n):
                if joined[q]:
                    joined[q] = False; t[q] = x; pc[q] += 1
            continue
        i = pc[p]; o = op[i]; a = A[i]; b = B[i]; c = C[i]
        if o == CPU:
            t[p] += a * par[int(b)]
        elif o == HEAP:
            t[p], heap = take_heap(t[p], heap, n, a, b, par)
        elif o == PUT:
            k = cnt[p]
            work[p, k] = max(a * par[BYTE], (b - 1) * par[POST] + a * par[BYTE] / b)
            posted[p, k] = t[p] + par[POST]
            row[p, k] = c
            cnt[p] += 1
            t[p] += b * par[POST]
        elif o == RECV:
            k = cnt[p] - 1 - int(b)
            x = s[(p + order * (k + 1)) % n, k] + (e[p, k] - s[p, k]) + par[LAT] + par[HOP] * (lhop[row[p, k]] - 1)
            t[p] = max(t[p], x) + par[POLL]
        elif o == SEND:
            if cnt[p] > 0:
                t[p] = max(t[p], e[p, cnt[p] - 1] + par[ACK])
            t[p] += a * par[POLL]
        elif o == FOLD:
            section = max(t[p], section) + fold_time(a, b, par)
            t[p] = section
        elif o == PFOLD:
            t[p] += a * par[MEMN] + b * par[PFORK] if c == 1 else a * par[FOLD1]
        elif o == COPY:
            t[p] += copy_time(n, a, b, par)
        elif o == READY:
            t[p] += par[POST]
            ready[p, nr[p]] = t[p]
            nr[p] += 1
        elif o == RWAIT:
            k = nr[p] - 1
            t[p] = max(t[p], ready[(p + order * (k + 1 + int(b))) % n, k] + par[LAT] + par[HOP] * (lhop[c] - 1)) + par[POLL]
        elif o == PACE:
            t[p] = max(t[p], e[p, cnt[p] - 1] - par[POST])
        elif o == CHAIN:
            t[p] = max(t[p], e[p, cnt[p] - 1] + par[LAT] + par[HOP] * (lhop[row[p, cnt[p] - 1]] - 1)) + par[POLL]
        elif o == JOIN:
            joined[p] = True
            continue
        pc[p] += 1
    return t.max()


@njit(cache=True)
def play_all(rowptr, start, end, op, A, B, C, P, nput, lptr, lcls, lval, lhop, ncls, order, pre, par):
    out = np.zeros(len(P))
    for r in range(len(P)):
        j = rowptr[r]
        out[r] = (pre[r] * par).sum() + play(start[j:j + P[r]], end[j:j + P[r]], op, A, B, C, P[r], nput[r], lptr, lcls, lval, lhop, ncls[r],
                                             order, par)
    return out


class Program:
    """What one call does: `pre`, counts of parameters before the ports start; `ops`, a list of operations for each port."""

    def __init__(self, shape, ports):
        self.shape, self.P, self.D = shape, ports, len(shape)
        self.p = int(np.prod(shape))
        self.S = sum(steps_of(d) for d in shape)
        self.pre = np.zeros(len(NAMES))
        self.ops = [[] for _ in range(ports)]
        self.ncls, self.base = 0, {}

    def add(self, q, o, a=0.0, b=0.0, c=0):
        self.ops[q].append((o, float(a), float(b), int(c)))

    def step_row(self, family, kind, q, k, s):
        table, n = step_loads(family, self.shape[k], fold(self.shape)[k], kind)
        if (kind, k) not in self.base:
            self.base[(kind, k)] = self.ncls
            self.ncls += n
        base = self.base[(kind, k)]
        hops, cl = table[(s, mirrored(q, self.D) if kind != 'ring' else q % 2)]
        return LOADS.row(hops, {base + c: v for c, v in cl.items()})

    def put(self, q, bytes_, row):
        self.add(q, PUT, bytes_, max(1, math.ceil(bytes_ / MAX_PUT)), row)

    def fork(self):
        self.pre[FORK0] += 1
        self.pre[FORKP] += self.P - 1

    def fold(self, q, bytes_, n=1, section=True):
        """Several ports: critical section, one thread. One port: the section is free, and long enough pieces take a team."""
        if self.P == 1:
            if section:
                self.add(q, CPU, n, CRIT)
            self.add(q, PFOLD, bytes_, n, 1 if bytes_ / n / 4 > PARALLEL_FOLD and not SWITCH.get('noteam') else 0)
        else:
            self.add(q, FOLD, bytes_, n)


class Batch:
    def __init__(self, programs):
        ptr, st, en, op, A, B, C = [], [], [], [], [], [], []
        for r in programs:
            ptr.append(len(st))
            for ops in r.ops:
                st.append(len(op))
                for o in ops:
                    op.append(o[0]); A.append(o[1]); B.append(o[2]); C.append(o[3])
                en.append(len(op))
        i64 = lambda v: np.array(v, np.int64)
        self.args = (i64(ptr), i64(st), i64(en), i64(op), np.array(A), np.array(B), i64(C), i64([r.P for r in programs]),
                     i64([max(sum(o[0] == PUT for o in ops) for ops in r.ops) + 1 for r in programs]))
        self.ncls = i64([r.ncls for r in programs])
        self.pre = np.array([r.pre for r in programs])

    def time(self, par):
        return play_all(*self.args, *LOADS.arrays(), self.ncls, 0 if SWITCH.get('noorder') else 1, self.pre, par)


# --------------------------------------------------------------------------------------------- 4 programs of the uTofu algorithms
def groups(segments, most=GROUPS):
    """Segments in at most `most` groups, the last one of a single segment (it decides what cannot overlap)."""
    if segments <= most:
        return [1] * segments
    m = [(segments - 1) // (most - 1)] * (most - 1)
    for i in range((segments - 1) % (most - 1)):
        m[i] += 1
    return m + [1]


def exchange_p2p(r, rounds):
    """Addresses by MPI, one message for each step."""
    r.pre[MPI] += rounds


def exchange_all(r):
    """Addresses by MPI_Allgather (recursive doubling of 16 bytes a port and rank), then all are stored."""
    r.pre[MPI] += math.log2(r.p)
    r.pre[BYTE] += 16 * r.P * r.p
    r.pre[EAGER] += 16 * r.P * r.p
    r.pre[ENTRY] += 3 * r.p * r.P


def allreduce_l(r, family, n):
    if r.P > 1:
        r.fork()
    for q in range(r.P):
        for k, s in port_steps(q, r.shape):
            row = r.step_row(family, 'all', q, k, s)
            if n > 1024:
                r.add(q, READY)
                r.add(q, RWAIT, c=row)
            r.put(q, n / r.P, row)
            r.add(q, RECV)
            r.add(q, SEND)
            r.fold(q, n / r.P, section=r.P > 1)      # with one port this form has neither region nor section


def allreduce_b(r, family, n, segment):
    exchange_p2p(r, r.S)
    if any(mirrored(q, r.D) for q in range(r.P)):
        exchange_p2p(r, r.S)
    r.fork()
    for q in range(r.P):
        steps, b = port_steps(q, r.shape), n / r.P
        for phase in (0, 1):
            for i, (k, s) in enumerate(steps if phase == 0 else reversed(steps)):
                vol = b / 2 ** (i + 1 if phase == 0 else len(steps) - i)
                segments = max(1, math.ceil(vol / (segment if phase == 0 and segment else MAX_PUT)))
                parts = groups(segments)
                row = r.step_row(family, 'all', q, k, s)
                r.add(q, HEAP, 3, 1)                 # a timer a step, reset twice before the puts
                for m in parts:
                    r.add(q, PUT, vol * m / segments, m, row)
                r.add(q, HEAP, 3)
                for j, m in enumerate(parts):
                    if phase == 0 or j == len(parts) - 1:
                        r.add(q, RECV, 0, len(parts) - 1 - j)
                        if m > 1:
                            r.add(q, CPU, m - 1, POLL)
                    if phase == 0:
                        r.fold(q, vol * m / segments, m)
                r.add(q, SEND)
                r.add(q, HEAP, 1)


def allgather_cont(r, family, n):
    r.fork()
    for q in range(r.P):
        b = n / r.P
        r.add(q, HEAP, 3)
        r.add(q, COPY, b / r.p, 1)
        for i, (k, s) in enumerate(reversed(port_steps(q, r.shape))):
            r.add(q, HEAP, 1)
            r.put(q, b / r.p * 2 ** i, r.step_row(family, 'all', q, k, s))
            r.add(q, RECV)
            r.add(q, SEND)
        r.add(q, HEAP, 2)
        r.add(q, COPY, b, r.p)
        r.add(q, HEAP, 1)


def allgather_send(r, family, n):
    exchange_p2p(r, r.S + 1)
    load, hops = permutation_load(family, r.shape)
    r.ncls = 1
    r.add(0, HEAP, 3)
    r.put(0, n / r.p, LOADS.row(hops, {0: load}))
    r.add(0, RECV)
    r.add(0, SEND)
    for i, (k, s) in enumerate(reversed(port_steps(0, r.shape))):
        r.put(0, n / r.p * 2 ** i, r.step_row(family, 'all', 0, k, s))
        r.add(0, RECV)
        r.add(0, SEND)


def allgather_blocks(r, family, n):
    exchange_all(r)
    r.fork()
    for q in range(r.P):
        b = n / r.P
        r.add(q, HEAP, 5)
        r.add(q, COPY, b / r.p, 1)
        for i, (k, s) in enumerate(reversed(port_steps(q, r.shape))):
            blocks, fresh = 2 ** i, 2 ** (i - 1) if i else 0      # half of what is sent came in the step before
            row = r.step_row(family, 'all', q, k, s)
            for m in groups(blocks):
                r.add(q, HEAP, m * (1 + fresh / blocks))
                r.add(q, PUT, b / r.p * m, m * max(1, math.ceil(b / r.p / MAX_PUT)), row)
                r.add(q, CPU, m * fresh / blocks, POLL)
            r.add(q, RECV)
        r.add(q, SEND, r.p)
        r.add(q, HEAP, 3)


def reduce_scatter_cont(r, family, n):
    r.fork()
    for q in range(r.P):
        b = n / r.P
        r.add(q, HEAP, 4)
        r.add(q, COPY, b, r.p)
        for i, (k, s) in enumerate(port_steps(q, r.shape)):
            r.add(q, HEAP, 1)
            r.put(q, b / 2 ** (i + 1), r.step_row(family, 'all', q, k, s))
            r.add(q, RECV)
            r.add(q, SEND)
            r.fold(q, b / 2 ** (i + 1))
        r.add(q, HEAP, 1)


def bucket(r, n, phases):
    """Rings dimension by dimension, 2 D buckets; the threads are forked anew for every dimension."""
    exchange_all(r)
    r.pre[COPY1] += n if 'rs' in phases else n / r.p
    for phase in phases:
        for j in range(r.D):
            level = j if phase == 'rs' else r.D - 1 - j
            for q in range(r.P):
                i = q // 2
                k = (i + level) % r.D
                size = n / r.P / math.prod(r.shape[(i + u) % r.D] for u in range(level))
                row = r.step_row('ring', 'ring', q, k, 0)
                r.add(q, JOIN)
                r.add(q, HEAP, 2)
                for _ in range(r.shape[k] - 1):
                    r.add(q, READY)
                    r.add(q, RWAIT, b=2, c=row)      # ready comes from one neighbour, data from the other
                    r.put(q, size / r.shape[k], row)
                    r.add(q, RECV)
                    if phase == 'rs':
                        r.fold(q, size / r.shape[k])
                    r.add(q, SEND)


def bcast_tree(r, family, n, segment, tmpbuf):
    if not tmpbuf:
        exchange_all(r)
    if r.P > 1:
        r.fork()
    for q in range(r.P):
        rows = [r.step_row(family, 'dec', q, k, s) for k, s in reversed(port_steps(q, r.shape))]
        segments = max(1, math.ceil(n / r.P / (segment or MAX_PUT)))
        x = n / r.P / segments
        r.add(q, HEAP, 3)
        for m in groups(segments, 40)[:-1]:          # the root: all children, then wait until all have left
            r.add(q, HEAP, 2 * m)
            for row in rows:
                r.add(q, PUT, x * m, m, row)
                r.add(q, PACE)
            r.add(q, SEND)
            if m > 1:
                r.add(q, CPU, m - 1, ACK)
        r.add(q, HEAP, 1)
        for row in rows:                             # the last segment down the tree
            r.add(q, PUT, x, 1, row)
            r.add(q, CHAIN)
        r.add(q, HEAP, 1)
    if tmpbuf:
        r.pre[COPY1] += n


def bcast_scatter_allgather(r, family, n):
    exchange_all(r)
    r.fork()
    for q in range(r.P):
        steps, x = port_steps(q, r.shape), n / r.P / r.p
        puts = max(1, math.ceil(x / MAX_PUT))
        r.add(q, HEAP, 4)
        for i, (k, s) in enumerate(steps):
            # the first subtree is served first and starts its allgather at once: those puts share the receivers' TNIs
            blocks = r.p / 2 ** (i + 1)
            r.add(q, PUT, x * blocks * (2 if i else 1), blocks * puts, r.step_row(family, 'inc', q, k, s))
            r.add(q, CHAIN)
        for i, (k, s) in enumerate(reversed(steps)):
            r.add(q, HEAP, 1)
            r.put(q, x * 2 ** i, r.step_row(family, 'all', q, k, s))
            r.add(q, RECV)
        r.add(q, SEND, r.p)
        r.add(q, HEAP, 1)


def gather_phase(r, family, n, dist, copies):
    for q in range(r.P):
        steps, b = port_steps(q, r.shape), n / r.P
        if copies:
            r.add(q, HEAP, 4)
            r.add(q, COPY, b / r.p, 1)
        for i, (k, s) in enumerate(reversed(steps) if dist == 'dec' else steps):
            r.add(q, HEAP, 1)
            r.put(q, b / r.p * 2 ** i, r.step_row(family, 'g' + dist, q, k, s))
            r.add(q, CHAIN)
        if copies:
            r.add(q, HEAP, 1)
            r.add(q, COPY, b, r.p)
        r.add(q, HEAP, 1)


def gather_tree(r, family, n, dist):
    r.fork()
    gather_phase(r, family, n, dist, True)


def scatter_tree(r, family, n, dist):
    r.fork()
    for q in range(r.P):
        steps, b = port_steps(q, r.shape), n / r.P
        r.add(q, HEAP, 5)
        r.add(q, COPY, b, r.p)
        for i, (k, s) in enumerate(reversed(steps) if dist == 'dec' else steps):
            r.put(q, b / 2 ** (i + 1), r.step_row(family, dist, q, k, s))
            r.add(q, CHAIN)
        r.add(q, HEAP, 2)
        r.add(q, COPY, b / r.p, 1)


def reduce_tree(r, family, n, segment, ports):
    """The measured code runs the ports one after the other in one thread (its loop has no parallel pragma)."""
    for q in range(ports):
        b = n / ports
        segments = max(1, math.ceil(b / (segment or MAX_PUT)))
        parts = groups(segments)
        r.add(0, HEAP, 3)
        for k, s in port_steps(q, r.shape):
            row = r.step_row(family, 'ginc', 0, k, s)
            r.add(0, HEAP, 1)
            if n > 1024:
                r.add(0, READY)
                r.add(0, RWAIT, c=row)
            for m in parts:
                r.add(0, PUT, b * m / segments, m, row)
            for j, m in enumerate(parts):
                r.add(0, HEAP, m)
                if n > 1024 or q == 0:
                    r.add(0, RECV, 0, len(parts) - 1 - j)
                else:
                    r.add(0, CPU, 1, POLL)           # children of later ports have sent long ago
                if m > 1:
                    r.add(0, CPU, m - 1, POLL)
                r.add(0, HEAP, 2 * m)
                r.add(0, PFOLD, b * m / segments, m, 1 if b / segments / 4 > PARALLEL_FOLD and not SWITCH.get('noteam') else 0)
        r.add(0, HEAP, 1)
        r.add(0, SEND)


def reduce_rsg(r, family, n):
    exchange_all(r)
    r.fork()
    for q in range(r.P):
        r.add(q, HEAP, 3)
        for i, (k, s) in enumerate(port_steps(q, r.shape)):
            r.put(q, n / r.P / 2 ** (i + 1), r.step_row(family, 'all', q, k, s))
            r.add(q, RECV)
            r.add(q, SEND)
            r.fold(q, n / r.P / 2 ** (i + 1))
    gather_phase(r, family, n, 'dec', False)


def alltoall_log(r, family, n):
    r.add(0, HEAP, 6)
    r.add(0, COPY, n, 1)
    for k, s in port_steps(0, r.shape):
        row = r.step_row(family, 'all', 0, k, s)
        r.add(0, HEAP, 2)
        r.add(0, COPY, n, r.p)
        r.add(0, READY)
        r.add(0, RWAIT, c=row)
        r.put(0, n / 2, row)
        r.add(0, RECV)
        r.add(0, SEND)
    r.add(0, HEAP, 2)
    r.add(0, COPY, n, r.p)


def utofu(shape, coll, algo, n, segment, ports):
    """Program of a row of calibration.csv, or None when its cause is not modelled."""
    fam, _, v = algo.partition('-')
    serial = coll == 'reduce' and v == 'binomial_tree'
    r = Program(shape, 1 if serial else 2 * len(shape) if fam == 'ring' else ports)
    r.pre[BASE] = 1
    if fam == 'ring':
        phases = {'allreduce': ('rs', 'ag'), 'allgather': ('ag',), 'scatter': ('ag',), 'reduce_scatter': ('rs',)}[coll]
        if phases == ('rs',) and 3 * n >= PREALLOCATED:
            return None          # three vectors and padding exceed the memory registered beforehand: allocated and registered in the call
        bucket(r, n, phases)
    elif coll == 'allreduce':
        allreduce_l(r, fam, n) if v == 'l' else allreduce_b(r, fam, n, segment)
    elif coll == 'allgather':
        {'vec_doubling_blocks': allgather_blocks, 'vec_doubling_cont_permute': allgather_cont, 'vec_doubling_cont_send': allgather_send}[v](r, fam, n)
    elif coll == 'reduce_scatter':
        reduce_scatter_cont(r, fam, n)
    elif coll == 'bcast':
        bcast_scatter_allgather(r, fam, n) if v == 'scatter_allgather' else bcast_tree(r, fam, n, segment, v.endswith('tmpbuf'))
    elif coll == 'reduce':
        reduce_rsg(r, fam, n) if not v == 'binomial_tree' else reduce_tree(r, fam, n, segment, ports)
    elif coll == 'gather':
        gather_tree(r, fam, n, v[-3:])
    elif coll == 'scatter':
        scatter_tree(r, fam, n, v[-3:])
    elif coll == 'alltoall':
        alltoall_log(r, fam, n)
    table = fam != 'ring' and coll not in ('bcast', 'alltoall') and not (coll == 'reduce' and v == 'binomial_tree') and not v.endswith('cont_send')
    if table:
        r.pre[ENTRY] += r.p * ports      # the table of blocks is made anew in each call
    return r


# ------------------------------------------------------------------------------------------------------- 5 algorithms over MPI
def message(r, n, load, hops, count=1):
    r.pre[MPI] += count
    r.pre[HOP] += count * (hops - 1)
    r.pre[BYTE] += count * n * load
    if n <= EAGER_LIMIT:
        r.pre[EAGER] += count * n
    else:
        r.pre[RNDV] += count


def xor_load(shape, m):
    return pair_load(shape, tuple((x, x ^ m) for x in range(int(np.prod(shape)))))


def shift_load(shape, m):
    p = int(np.prod(shape))
    return pair_load(shape, tuple((x, (x + m) % p) for x in range(p)))


def over_mpi(shape, coll, api, algo, n):
    """Steps one after the other, ranks in row-major order. None: not modelled."""
    if n > 2**26:
        return None              # temporary memory is allocated, touched and registered in the call
    r = Program(shape, 1)
    p, S, key = r.p, r.S, (api, coll + ' ' + algo)
    halves = [n / 2 ** (i + 1) for i in range(S)]
    torus = []
    for k, s in port_steps(0, shape):
        hops, cl = step_loads('bine', shape[k], fold(shape)[k], 'all')[0][(s, 0)]
        torus.append((max(cl.values()), hops))
    if key == ('fujitsu-mpi', 'allreduce recursive_doubling'):
        for i in range(S):
            message(r, n, *xor_load(shape, 1 << i))
        r.pre[FOLD1] += n * S
    elif key == ('fujitsu-mpi', 'allgather recursive-doubling'):
        for i in range(S):
            message(r, n / p * 2 ** i, *xor_load(shape, 1 << i))
    elif key == ('fujitsu-mpi', 'reduce_scatter recursive-halving'):
        for i in range(S):
            message(r, halves[i], *xor_load(shape, 1 << (S - 1 - i)))
        r.pre[FOLD1] += n * (p - 1) / p
    elif api == 'fujitsu-mpi' and algo == 'ring' and not (coll == 'allreduce' and n < 2048):
        message(r, n / p, *shift_load(shape, 1), count=(p - 1) * (2 if coll == 'allreduce' else 1))
        if coll != 'allgather':
            r.pre[FOLD1] += n * (p - 1) / p
    elif key == ('fujitsu-mpi', 'allgather bruck'):
        for i in range(S):
            message(r, n / p * 2 ** i, *shift_load(shape, 1 << i))
        r.pre[COPY1] += n
    elif api == 'fujitsu-mpi' and algo == 'binomial' and coll in ('bcast', 'reduce'):
        for i in range(S):       # broadcast: near first, so that many ranks send far at once; reduce: only the last ones go far
            message(r, n, *pair_load(shape, tuple((x, x + (1 << i)) for x in range(1 << i if coll == 'bcast' else 1))))
        if coll == 'reduce':
            r.pre[FOLD1] += n * S
    elif (api == 'fujitsu-mpi' and algo == 'binomial') or (api == 'mpi' and coll in ('gather', 'scatter')):
        for i in range(S):
            message(r, n / p * 2 ** i, *(pair_load(shape, ((0, 1 << i),)) if api == 'fujitsu-mpi' else (1, 1)))
    elif api == 'mpi' and coll in ('allgather', 'reduce_scatter'):
        for (load, hops), v in zip(torus, halves):
            message(r, v, load, hops)
        if algo.endswith('send'):
            message(r, n / p, *permutation_load('bine', shape))
        else:
            r.pre[COPY1] += n
            r.pre[BLOCK] += p
        if coll == 'reduce_scatter':
            r.pre[FOLD1] += n * (p - 1) / p
    elif key == ('mpi', 'alltoall bruck-log'):
        for i in range(S):
            message(r, n / 2, *shift_load(shape, 1 << i))
        r.pre[COPY1] += n * (S + 2)
        r.pre[BLOCK] += p * (S + 2)
    elif key == ('mpi', 'reduce bine-binomial_tree'):
        message(r, n, 1, 1, count=S)
        r.pre[FOLD1] += n * S
    else:
        return None
    return r


# ----------------------------------------------------------------------------------------------------------------------- 6 fit
SCALE = 0.08                     # of the robust loss, in the logarithm of the time
# known beforehand of what small shapes hardly show: about ten cycles an entry, forty a short memcpy (sigma of the logarithm)
PRIOR = {'entry': 0.2, 'block': 0.3}
SIGMA = 4.0                      # all others


def load_rows(path=DATA):
    rows = []
    for x in csv.DictReader(open(path)):
        shape = tuple(map(int, x['shape'].split('x')))
        n = int(x['bytes'])
        r = utofu(shape, x['collective'], x['algorithm'], n, int(x['segment_bytes'] or 0), int(x['ports'] or 1)) if x['api'] == 'utofu' \
            else over_mpi(shape, x['collective'], x['api'], x['algorithm'], n)
        if r is not None:
            rows.append((x, r))
    return rows


def vec(p):
    return np.array([p[n] for n in NAMES], float)


class Fit:
    """Weights: a family counts by the root of its rows. The loss is soft L1 of the logarithm."""

    def __init__(self, rows):
        self.rows, self.batch = rows, Batch([r for _, r in rows])
        self.y = np.log([float(x['median_us']) for x, _ in rows])
        fam = [(x['collective'], x['algorithm']) for x, _ in rows]
        c = collections.Counter(fam)
        self.w = np.array([c[f] ** -0.25 for f in fam])
        self.w /= np.sqrt((self.w ** 2).mean())
        # rows of one session that contradict the other rows of the same code: judged, not fitted
        self.w[np.array([x['algorithm'].startswith('ring-vec') and x['shape'] == '8x8x8' for x, _ in rows])] = 0.0

    def error(self, p):
        return np.log(self.batch.time(vec(p))) - self.y

    def run(self, p0, free=FREE, iterations=10, verbose=False):
        """Gauss-Newton with robust weights. The simulation is only piecewise smooth (who gets a lock first), so derivatives are
        taken over 10 %, every step is chosen among several lengths, and a coordinate search ends it. Deterministic."""
        base, ix = vec(p0), [IX[n] for n in free]
        x0 = np.log([START[n] for n in free])
        sig = np.array([PRIOR.get(n, SIGMA) for n in free])

        def residual(x):
            par = base.copy()
            par[ix] = np.exp(x)
            return (np.log(self.batch.time(par)) - self.y) * self.w / SCALE

        def cost(x):
            return (np.sqrt(1 + residual(x) ** 2) - 1).sum() + (0.5 * ((x - x0) / sig) ** 2).sum()
        x = np.log(base[ix])
        best = cost(x)
        for _ in range(iterations):
            r, J = residual(x), np.empty((len(self.y), len(x)))
            for i in range(len(x)):
                h = np.zeros(len(x))
                h[i] = 0.05
                J[:, i] = (residual(x + h) - residual(x - h)) / 0.1
            om = 1 / np.sqrt(1 + r * r)
            H = J.T @ (J * om[:, None]) + np.diag(1 / sig ** 2)
            g = J.T @ (om * r) + (x - x0) / sig ** 2
            cand = []
            for lam in (1e-3, 1e-2, 0.1, 1.0, 10.0):
                d = np.clip(-np.linalg.solve(H + lam * np.diag(np.diag(H)), g), -0.5, 0.5)
                cand += [(cost(x + f * d), tuple(x + f * d)) for f in (1.0, 0.4)]
            c, y = min(cand)
            if verbose:
                print('  cost %.2f -> %.2f' % (best, c), flush=True)
            stop = c > best * (1 - 1e-3)
            if c < best:
                best, x = c, np.array(y)
            if stop:
                break
        for h in (0.1, 0.03):
            for i in range(len(x)):
                for s in (h, -h):
                    y = x.copy()
                    y[i] += s
                    c = cost(y)
                    if c < best:
                        best, x = c, y
                        break
        par = base.copy()
        par[ix] = np.exp(x)
        return dict(zip(NAMES, map(float, par))), best

    def standard_errors(self, p, free=FREE):
        """Of the logarithm of each parameter; sandwich over groups (collective, algorithm, ports, shape), whose rows err together."""
        J = np.empty((len(self.y), len(free)))
        for i, n in enumerate(free):
            J[:, i] = (self.error({**p, n: p[n] * 1.05}) - self.error({**p, n: p[n] / 1.05})) / (2 * math.log(1.05)) * self.w / SCALE
        r = self.error(p) * self.w / SCALE
        om = 1 / np.sqrt(1 + r * r)
        H = J.T @ (J * (om ** 3)[:, None]) + np.diag([1 / PRIOR.get(n, SIGMA) ** 2 for n in free])
        g = collections.defaultdict(lambda: np.zeros(len(free)))
        for k, (x, _) in enumerate(self.rows):
            g[(x['collective'], x['algorithm'], x['ports'], x['shape'])] += J[k] * om[k] * r[k]
        M = sum(np.outer(v, v) for v in g.values())
        Hi = np.linalg.inv(H)
        return dict(zip(free, np.sqrt(np.diag(Hi @ M @ Hi))))


# -------------------------------------------------------------------------------------------------------------------- 7 tables
def summary(e):
    a = np.abs(np.exp(e) - 1)
    return '%5.1f %% | %5.1f %% | %+.3f | %d' % (100 * np.median(a), 100 * np.quantile(a, .9), np.mean(e), len(e))


def size_class(x):
    b = int(x['bytes'])
    return '1 to 2 KiB' if b <= 2048 else '2 16 to 128 KiB' if b <= 131072 else '3 1 to 8 MiB' if b <= 8388608 else '4 above'


def regrets(rows, t):
    g = collections.defaultdict(list)
    for (x, _), v in zip(rows, t):
        g[(x['shape'], x['collective'], x['bytes'])].append((v, float(x['median_us'])))
    return np.array([min(v)[1] / min(y for _, y in v) for v in g.values() if len(v) > 1])


def by(rows, e, *keys):
    g = collections.defaultdict(list)
    for (x, _), v in zip(rows, e):
        g[tuple(k(x) if callable(k) else x[k] for k in keys)].append(v)
    return {k: np.array(v) for k, v in sorted(g.items())}


def leave_one_out(rows, p0):
    e, params = np.zeros(len(rows)), {}
    for sh in sorted({x['shape'] for x, _ in rows}):
        te = [i for i, z in enumerate(rows) if z[0]['shape'] == sh]
        params[sh], _ = Fit([z for z in rows if z[0]['shape'] != sh]).run(p0, iterations=6)
        e[te] = Fit([rows[i] for i in te]).error(params[sh])
    return e, params


def interval_key(x):
    return (size_class(x), 'mpi' if x['api'] != 'utofu' else '1 port' if x['ports'] == '1' else 'ports')


# a shape's rows err together and there are three shapes: quantiles a little wider than 90 %
INTERVAL = (.035, .965)


def spread(x):
    """Errors of the steps add up: the width of an interval grows with the root of log2 p."""
    return math.sqrt(math.log2(np.prod([int(v) for v in x['shape'].split('x')])))


def coverage(rows, e):
    """90 % intervals: quantiles of the other shapes' left-out errors over `spread`, by size class and kind; coverage on the shape."""
    shapes, keys = [x['shape'] for x, _ in rows], [interval_key(x) for x, _ in rows]
    sp = np.array([spread(x) for x, _ in rows])
    hit = np.zeros(len(rows), bool)
    for sh in set(shapes):
        for k in set(keys):
            tr = [i for i in range(len(rows)) if shapes[i] != sh and keys[i] == k]
            te = [i for i in range(len(rows)) if shapes[i] == sh and keys[i] == k]
            if te:
                lo, hi = np.quantile(e[tr] / sp[tr], INTERVAL)
                hit[te] = (e[te] >= lo * sp[te]) & (e[te] <= hi * sp[te])
    return hit


def main():
    cmd = sys.argv[1] if len(sys.argv) > 1 else 'tables'
    path = os.path.join(HERE, 'params.json')
    p = json.load(open(path)) if os.path.exists(path) else dict(START)
    if cmd == 'predict':
        shape = tuple(map(int, sys.argv[2].split('x')))
        r = utofu(shape, sys.argv[3], sys.argv[4], *map(int, sys.argv[5:8]))
        print('%.1f us (predicted)' % Batch([r]).time(vec(p))[0])
        return
    rows = load_rows()
    fit = Fit(rows)
    if cmd == 'fit':
        p, c = fit.run(dict(START), iterations=12, verbose=True)
        json.dump(p, open(path, 'w'), indent=1)
        print(summary(fit.error(p)))
        return
    if cmd == 'ablate':
        import ablation
        ablation.run(p)
        return
    e = fit.error(p)
    ut = np.array([x['api'] == 'utofu' for x, _ in rows])
    out = open(os.path.join(HERE, 'TABLES.md'), 'w')
    w = lambda s='': print(s, file=out)
    w('# Accuracy of model.py (absolute relative error; bias of the logarithm)\n')
    w('Rows modelled: %d of the 3,057 (all utofu rows but the 512 MiB ring reduce-scatter; mpi and fujitsu-mpi up to 64 MiB where the schedule is clear).\n' % len(rows))
    head = '| %s | median | p90 | bias | rows |'
    w(head % 'fitted'); w('|---|---|---|---|---|')
    w('| all | %s |' % summary(e)); w('| utofu | %s |' % summary(e[ut])); w('| mpi, fujitsu-mpi | %s |' % summary(e[~ut]))
    for (sh,), v in by(rows, e, 'shape').items():
        w('| %s | %s |' % (sh, summary(v)))
    cache = os.path.join(HERE, 'left_out.json')
    if os.path.exists(cache) and json.load(open(cache))['params'] == p:
        z = json.load(open(cache))
        el, lp = np.array(z['errors']), z['fits']
    else:
        el, lp = leave_one_out(rows, p)
        json.dump({'params': p, 'errors': list(map(float, el)), 'fits': lp}, open(cache, 'w'))
    w(); w(head % 'shape left out of the fit'); w('|---|---|---|---|---|')
    w('| all | %s |' % summary(el)); w('| utofu | %s |' % summary(el[ut]))
    for (sh,), v in by(rows, el, 'shape').items():
        w('| %s | %s |' % (sh, summary(v)))
    for (sh,), v in by([z for z, u in zip(rows, ut) if u], el[ut], 'shape').items():
        w('| %s, utofu | %s |' % (sh, summary(v)))
    w(); w('| regret (time of what the model ranks first / best measured) | mean | p90 | cells |'); w('|---|---|---|---|')
    t, tl = e + fit.y, el + fit.y
    sub = [z for z, u in zip(rows, ut) if u]
    for name, rr, tt in (('fitted, utofu rows', sub, t[ut]), ('fitted, all modelled rows', rows, t), ('left out, utofu rows', sub, tl[ut]), ('left out, all modelled rows', rows, tl)):
        g = regrets(rr, tt)
        w('| %s | %.3f | %.3f | %d |' % (name, g.mean(), np.quantile(g, .9), len(g)))
    hit = coverage(rows, el)
    w(); w('| 90 % intervals | coverage of left-out rows |'); w('|---|---|'); w('| all | %.1f %% |' % (100 * hit.mean()))
    for (sh,), v in by(rows, hit, 'shape').items():
        w('| %s | %.1f %% |' % (sh, 100 * v.mean()))
    w(); w('| interval: size, kind; log(measured / predicted) over sqrt(log2 p) | from | to | measured / predicted at 512 ranks |'); w('|---|---|---|---|')
    for k, v in by(rows, el / np.array([spread(x) for x, _ in rows]), interval_key).items():
        lo, hi = np.quantile(v, INTERVAL)
        w('| %s, %s | %+.3f | %+.3f | %.2f to %.2f |' % (k[0][0][2:], k[0][1], -hi, -lo, np.exp(-3 * hi), np.exp(-3 * lo)))
    se = fit.standard_errors(p)
    w(); w('| parameter | value | unit | standard error | left-out fits | source | what |'); w('|---|---|---|---|---|---|---|')
    for n, unit, _, kind, what in PARAMS:
        f = (lambda v: 1 / v) if n in RATES else (lambda v: v)
        src = {'fit': 'fitted', 'lit': 'literature', 'set': 'set'}[kind]
        w('| %s | %.4g | %s | %s | %s | %s | %s |' % (n, f(p[n]), 'MB/s' if n in RATES else unit, '%.0f %%' % (100 * se[n]) if n in se else '-',
                                                    ', '.join('%.3g' % f(lp[s][n]) for s in sorted(lp)) if kind == 'fit' else '-', src, what))
    for title, keys in (('collective, algorithm', ('collective', 'algorithm')), ('collective, algorithm, size', ('collective', 'algorithm', size_class)),
                        ('collective, algorithm, ports, shape', ('collective', 'algorithm', 'ports', 'shape'))):
        w(); w(head % ('fitted: ' + title)); w('|---|---|---|---|---|')
        for k, v in by(rows, e, *keys).items():
            w('| %s | %s |' % (', '.join(s[2:] if s[:2] in ('1 ', '2 ', '3 ', '4 ') else s for s in k), summary(v)))
    out.close()
    print(open(os.path.join(HERE, 'TABLES.md')).read()[:5200])


if __name__ == '__main__':
    main()
