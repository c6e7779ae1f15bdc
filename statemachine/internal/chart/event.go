package chart

import (
	"maps"
	"slices"
)

// NamesOf lists the names that callers can send for the patterns. It may be a part of CallableNames.
func (d *Definition) NamesOf(patterns ...EventPattern) (names []EventName) {
	if len(patterns) == 1 {
		return d.namesOfOne(patterns[0])
	}
	seen := map[EventName]bool{}
	for _, p := range patterns {
		for _, name := range d.namesOfOne(p) {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

func (d *Definition) namesOfOne(p EventPattern) []EventName {
	switch {
	case p.Any:
		return d.CallableNames
	case p.Prefix:
		from, isName := slices.BinarySearch(d.CallableNames, p.Name)
		below, _ := slices.BinarySearch(d.CallableNames, p.Name+".")
		behind, _ := slices.BinarySearch(d.CallableNames, p.Name+"/") // the character behind "."
		if isName {
			return append([]EventName{d.CallableNames[from]}, d.CallableNames[below:behind]...)
		}
		return d.CallableNames[below:behind]
	case IsReserved(p.Name) || d.ServiceEvents[p.Name]:
		return nil
	}
	return []EventName{p.Name}
}

// Callable returns the names that callers can send and that the definition spells out, in order.
func (d *Definition) Callable() []EventName {
	var names []EventName
	for _, name := range slices.Sorted(maps.Keys(d.Declared.Exact)) {
		if !IsReserved(name) && !d.ServiceEvents[name] {
			names = append(names, name)
		}
	}
	return names
}

// EventNames lists the names that callers can send and that the definition spells out, in alphabetical order. Declares may know
// more: those that only a pattern like "payment.*" matches.
func (d *Definition) EventNames() []EventName { return slices.Clone(d.CallableNames) }

// SignalVariable is the variable of expressions that has the event as W3C SCXML, section 5.10.1, describes it.
const SignalVariable = "_event"
