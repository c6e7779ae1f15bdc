package comparison

import (
	"errors"
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/appendixd"
)

// Reduce makes a case with a difference smaller, as long as there is one: it leaves out steps, transitions, actions and
// states, one after the other. The parser should read stored definitions, because what is left may have faults of the
// chart. The case is changed in place. rapid shrinks what was drawn, and knows nothing of charts: it comes less far.
func Reduce(p *statemachine.Parser, c Case) Case {
	kind := ""
	fails := func() bool {
		_, err := Run(p, c)
		var difference *Difference
		if !errors.As(err, &difference) {
			return false
		}
		what, _, _ := strings.Cut(difference.What, ":")
		if kind == "" {
			kind = what
		}
		return what == kind // otherwise it could become another one
	}
	if !fails() {
		return c
	}
	for size, before := c.size(), 0; size != before; {
		before = size
		for _, o := range c.omissions() {
			undo := o()
			if smaller := c.size(); smaller < size && fails() {
				size = smaller
			} else {
				undo()
			}
		}
	}
	return c
}

// Smallest is the difference that is left of a case when it was reduced; err, the one that there was, if that fails.
func Smallest(c Case, err error) error {
	stored, failed := statemachine.NewParser(statemachine.ParserOptions{Stored: true})
	if failed != nil {
		return err
	}
	if _, reduced := Run(stored, Reduce(stored, c)); reduced != nil {
		return reduced
	}
	return err
}

// size is how much there is to read.
func (c *Case) size() int {
	size := len(Definition(c.Chart))
	for _, operations := range c.Runs {
		size += 1 + len(operations)
	}
	return size
}

// omission leaves something out, and returns what puts it back.
type omission func() (undo func())

// omit leaves out one element of a list. The list may have changed since: then nothing happens.
func omit[T any](list *[]T, element int) omission {
	return func() func() {
		before := *list
		if element < len(before) {
			*list = slices.Delete(slices.Clone(before), element, element+1)
		}
		return func() { *list = before }
	}
}

func omitAll[T any](list *[]T) []omission {
	var out []omission
	for k := range slices.Backward(*list) {
		out = append(out, omit(list, k))
	}
	return out
}

// blank sets something to its zero value.
func blank[T any](at *T) omission {
	return func() func() {
		before := *at
		var zero T
		*at = zero
		return func() { *at = before }
	}
}

func (c *Case) omissions() []omission {
	out := omitAll(&c.Runs)
	for k := range c.Runs {
		out = append(out, omitAll(&c.Runs[k])...)
	}
	if len(c.Chart.Root.Children) > 1 {
		out = append(out, omitAll(&c.Chart.Root.Children)...)
	}
	out = append(append(out, omitAll(&c.Chart.Events)...), blank(&c.Chart.Unmatched))
	for _, s := range c.Chart.States() {
		if s.Parent != c.Chart.Root {
			out = append(out, c.omitState(s))
		}
		for k, t := range slices.Backward(s.Transitions) {
			if t.After == nil {
				out = append(out, omit(&s.Transitions, k))
			}
		}
		out = append(append(out, omitAll(&s.OnEntry)...), omitAll(&s.OnExit)...)
		out = append(out, blank(&s.Initial), blank(&s.Default), blank(&s.Output))
		for k := range s.After {
			out = append(out, omitAfter(s, k))
		}
		for _, t := range s.Transitions {
			out = append(out, blank(&t.Cond), blank(&t.Reenter))
			out = append(append(out, omitAll(&t.Content)...), omitAll(&t.Target)...)
		}
	}
	return out
}

// omitState leaves a state out when nothing leads into it.
func (c *Case) omitState(s *appendixd.State) omission {
	return func() func() {
		led := func(targets []*appendixd.State) bool {
			return slices.ContainsFunc(targets, func(to *appendixd.State) bool { return to == s || slices.Contains(below(s, true), to) })
		}
		for _, from := range c.Chart.States() {
			if led(from.Initial) || led(from.Default) || slices.ContainsFunc(from.Transitions, func(t *appendixd.Transition) bool { return led(t.Target) }) {
				return func() {}
			}
		}
		children, histories := s.Parent.Children, s.Parent.Histories
		other := func(candidate *appendixd.State) bool { return candidate == s }
		if s.Parent.Children = slices.DeleteFunc(slices.Clone(children), other); len(s.Parent.Children) == 0 {
			s.Parent.Children = children
		}
		s.Parent.Histories = slices.DeleteFunc(slices.Clone(histories), other)
		return func() { s.Parent.Children, s.Parent.Histories = children, histories }
	}
}

// omitAfter leaves out a timer with its transitions.
func omitAfter(s *appendixd.State, number int) omission {
	return func() func() {
		afters, transitions := s.After, s.Transitions
		if number < len(afters) {
			s.After = slices.Delete(slices.Clone(afters), number, number+1)
			s.Transitions = slices.DeleteFunc(slices.Clone(transitions), func(t *appendixd.Transition) bool { return t.After == afters[number] })
		}
		return func() { s.After, s.Transitions = afters, transitions }
	}
}
