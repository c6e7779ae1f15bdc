package diagram

import (
	"container/heap"
	"maps"
	"slices"

	"troupe/statemachine"
)

// marks are what an instance has to do with the nodes and transitions of its chart.
type marks struct {
	now     []bool   // nodes that are active
	visited []bool   // nodes that were, or are
	taken   [][]bool // transitions, by node
	start   []bool   // containers that were entered by default
}

// A history has what an instance came from and where it came to, with the event in between; which transitions were
// selected, it does not have. marksOf finds them: the cheapest path from what was active to each node that became
// active, by transitions that the event triggers and those that nothing from outside does. Where guards would have
// decided, it takes the first in document order.
func marksOf(p *Picture) *marks {
	c := p.Chart
	m := &marks{now: make([]bool, len(c.Nodes)), visited: make([]bool, len(c.Nodes)), taken: make([][]bool, len(c.Nodes)), start: make([]bool, len(c.Nodes))}
	for i := range c.Nodes {
		m.taken[i] = make([]bool, len(c.Nodes[i].Transitions))
	}
	switch {
	case p.Reached != nil:
		m.visited, m.taken = p.Reached.Nodes, p.Reached.Transitions
		for i := range c.Nodes {
			m.start[i] = m.visited[i] && !slices.ContainsFunc(c.Nodes[i].Initial, func(to int) bool { return !m.visited[to] })
		}
		return m
	case p.Instance == nil:
		return m
	}
	t := &tracer{c: c, m: m}
	for i := range p.Instance.steps {
		t.step(&p.Instance.steps[i])
	}
	for i := range t.active(p.Instance.At) {
		m.now[i], m.visited[i] = true, true
	}
	return m
}

type tracer struct {
	c *statemachine.Chart
	m *marks
}

func (t *tracer) active(at []statemachine.Position) map[int]bool {
	active := map[int]bool{}
	for _, p := range at {
		if i, ok := t.c.Node(p); ok {
			for ; i >= 0; i = t.c.Nodes[i].Parent {
				active[i] = true
			}
		}
	}
	return active
}

func (t *tracer) step(s *Step) {
	start, end := t.active(s.Start), t.active(s.End)
	if s.Event == "" {
		start = map[int]bool{}
	}
	for i := range end {
		t.m.visited[i] = true
	}
	from := &search{tracer: t, event: s.Event, start: start, cost: map[int]int{}, by: map[int]arrival{}}
	from.run()
	for _, i := range slices.Sorted(maps.Keys(end)) {
		isInnermost := !slices.ContainsFunc(t.c.Nodes[i].Children, func(c int) bool { return end[c] })
		if !start[i] && isInnermost {
			from.mark(i)
		}
	}
	if maps.Equal(start, end) {
		t.stay(s.Event, start)
	}
}

// stay marks the first transition that an event triggers and that leads to where the instance stands already.
func (t *tracer) stay(event statemachine.EventName, active map[int]bool) {
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(active))) {
		for k := range t.c.Nodes[i].Transitions {
			tr := &t.c.Nodes[i].Transitions[k]
			if tr.Takes(event) && !slices.ContainsFunc(tr.Targets, func(to int) bool { return !active[to] && !t.c.Nodes[to].Kind.IsHistory() }) {
				t.m.taken[i][k] = true
				return
			}
		}
	}
}

type search struct {
	*tracer
	event statemachine.EventName
	start map[int]bool
	cost  map[int]int
	by    map[int]arrival
	queue queue
}

// arrival is how a node was entered: from a node that was active, by a transition of it or of one around it; or, with
// transition -1, together with the node from.
type arrival struct{ from, node, transition int }

// The costs of ways into a node. A transition that the event triggers is the likeliest, then what follows on its own,
// then what something in another region has set off, then events that actions raise.
const (
	costEvent     = 10
	costItself    = 12
	costElsewhere = 30
	costRaised    = 60
)

func (s *search) run() {
	if s.event == "" {
		for i := range s.c.Nodes {
			if s.c.Nodes[i].Parent < 0 {
				s.reach(i, 0, arrival{-1, -1, -1}, -1)
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(s.start)) {
		s.leaveFrom(i, i, 0)
	}
	for s.queue.Len() > 0 {
		next := heap.Pop(&s.queue).(queued)
		if next.cost > s.cost[next.node] {
			continue
		}
		for i := next.node; i >= 0; i = s.c.Nodes[i].Parent {
			s.leaveFrom(i, next.node, next.cost)
		}
	}
}

// leaveFrom follows the transitions of node i, which is the node that was reached, or around it.
func (s *search) leaveFrom(i, reached, cost int) {
	n := &s.c.Nodes[i]
	for k := range n.Transitions {
		tr := &n.Transitions[k]
		by := costRaised
		switch {
		case s.start[reached] && tr.Takes(s.event):
			by = costEvent
		case tr.Trigger == statemachine.Always || tr.Trigger == statemachine.OnDone:
			if by = costItself; s.start[reached] {
				by = costElsewhere
			}
		case tr.Trigger != statemachine.OnEvent:
			continue // timers and children come in steps of their own
		}
		domain := s.domain(i, tr)
		for _, to := range tr.Targets {
			s.reach(to, cost+by, arrival{reached, i, k}, domain)
		}
	}
}

// domain is the node whose descendants a transition leaves and enters (statemachine/DEFINITION.md, "Domains").
func (s *search) domain(i int, tr *statemachine.ChartTransition) int {
	isInside := func(around int) bool {
		return !slices.ContainsFunc(tr.Targets, func(to int) bool { return !s.c.Contains(around, to) })
	}
	if !tr.Reenter && isInside(i) {
		return i
	}
	for a := s.c.Nodes[i].Parent; a >= 0; a = s.c.Nodes[a].Parent {
		if n := &s.c.Nodes[a]; n.Parent < 0 || n.Kind == statemachine.Compound && isInside(a) {
			return a
		}
	}
	return i
}

// reach notes a way into a node, with what is entered by default in it, and beside it in regions between it and the
// domain.
func (s *search) reach(i, cost int, by arrival, domain int) {
	if old, known := s.cost[i]; known && old <= cost {
		return
	}
	s.cost[i], s.by[i] = cost, by
	heap.Push(&s.queue, queued{cost, i})
	for _, c := range s.entered(i) {
		s.reach(c, cost, arrival{i, i, -1}, i)
	}
	for a, below := s.c.Nodes[i].Parent, i; a >= 0 && below != domain; a, below = s.c.Nodes[a].Parent, a {
		if s.c.Nodes[a].Kind != statemachine.Parallel {
			continue
		}
		for _, c := range s.c.Nodes[a].Children {
			if c != below && !s.c.Nodes[c].Kind.IsHistory() {
				s.reach(c, cost+1, arrival{i, i, -1}, a)
			}
		}
	}
}

// entered is what can be entered with a node: by default, in all regions, or because it is remembered.
func (s *search) entered(i int) (inner []int) {
	n := &s.c.Nodes[i]
	switch n.Kind {
	case statemachine.Compound:
		return n.Initial
	case statemachine.Parallel:
		inner = n.Children
	case statemachine.ShallowHistory:
		inner = append(slices.Clone(n.Default), s.c.Nodes[n.Parent].Children...)
	case statemachine.DeepHistory:
		inner = append(slices.Clone(n.Default), s.within(n.Parent)...)
	}
	return slices.DeleteFunc(slices.Clone(inner), func(c int) bool { return s.c.Nodes[c].Kind.IsHistory() })
}

func (s *search) within(i int) (nodes []int) {
	for _, c := range s.c.Nodes[i].Children {
		nodes = append(append(nodes, c), s.within(c)...)
	}
	return nodes
}

func (s *search) mark(i int) {
	for range len(s.c.Nodes) {
		by, known := s.by[i]
		if !known || by.from < 0 {
			return
		}
		s.m.visited[i] = true
		if by.transition < 0 {
			s.m.start[by.node] = true
		} else if s.m.taken[by.node][by.transition] = true; s.start[by.from] {
			return
		}
		i = by.from
	}
}

type queued struct{ cost, node int }

// queue is a heap, the cheapest first, and of two the one that stands first in the chart.
type queue []queued

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	return q[i].cost < q[j].cost || q[i].cost == q[j].cost && q[i].node < q[j].node
}
func (q *queue) Push(x any) { *q = append(*q, x.(queued)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
