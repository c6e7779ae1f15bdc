package filter

import "troupe/statemachine/data"

// The walk below is that of MongoDB's matcher (statemachine/filter/FILTER.md, "Paths"). Each function reports whether the
// predicate holds for one of the values that a path leads to.

func (m *matching) below(c *condition, v data.Value, path []segment) bool {
	switch {
	case v.Kind() == data.Array:
		return m.inArray(c, v, path)
	case len(path) == 0:
		return m.holds(&c.predicate, v)
	}
	return m.inObject(c, v, path)
}

func (m *matching) inObject(c *condition, v data.Value, path []segment) bool {
	member, ok := v.Lookup(path[0].key)
	if !ok {
		return m.holds(&c.predicate, nil)
	}
	return m.below(c, member, path[1:])
}

func (m *matching) inArray(c *condition, list data.Value, path []segment) bool {
	if len(path) == 0 {
		if !c.predicate.ofArrays() {
			for _, e := range list.Elements() {
				if m.holds(&c.predicate, e) {
					return true
				}
			}
		}
		return m.holds(&c.predicate, list)
	}
	for i, e := range list.Elements() {
		if e.Kind() == data.Object && m.inObject(c, e, path) {
			return true
		}
		if i == path[0].position && m.atPosition(c, e, path[1:]) {
			return true
		}
	}
	return false
}

// atPosition follows path from an element that was named by its position. At
// the end of the path an array is not taken apart once more.
func (m *matching) atPosition(c *condition, e data.Value, path []segment) bool {
	if len(path) == 0 {
		return m.holds(&c.predicate, e)
	}
	switch e.Kind() {
	case data.Object:
		return m.inObject(c, e, path)
	case data.Array:
		return m.inArray(c, e, path)
	}
	return false
}

// inElement follows the path of a condition inside $elemMatch, which is not empty, from an element: an object, or an array, which
// then is a document whose keys are the positions.
func (m *matching) inElement(c *condition, e data.Value) bool {
	if e.Kind() == data.Object {
		return m.inObject(c, e, c.path)
	}
	if c.path[0].position >= 0 {
		if inside, ok := e.Index(c.path[0].position); ok {
			return m.below(c, inside, c.path[1:])
		}
	}
	return m.holds(&c.predicate, nil)
}
