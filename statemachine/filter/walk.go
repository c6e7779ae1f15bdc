package filter

import "troupe/statemachine/data"

// The walk below is that of MongoDB's matcher. Each function reports whether the
// condition holds for one of the values that a path leads to.

// below follows path from v, which may be anything.
func (c *clause) below(v data.Value, path []segment) bool {
	switch {
	case v.Kind() == data.Array:
		return c.inArray(v, path)
	case len(path) == 0:
		return c.holds(v)
	}
	return c.inObject(v, path)
}

// inObject follows path, which is not empty, from v, which is no array. In what
// is no object everything is missing.
func (c *clause) inObject(v data.Value, path []segment) bool {
	member, ok := v.Lookup(path[0].key)
	if !ok {
		return c.holds(nil)
	}
	return c.below(member, path[1:])
}

// inArray follows path from an array.
func (c *clause) inArray(list data.Value, path []segment) bool {
	if len(path) == 0 {
		for _, e := range list.Elements() {
			if c.holds(e) {
				return true
			}
		}
		return c.holds(list)
	}
	for i, e := range list.Elements() {
		if e.Kind() == data.Object && c.inObject(e, path) {
			return true
		}
		if i == path[0].position && c.atPosition(e, path[1:]) {
			return true
		}
	}
	return false
}

// atPosition follows path from an element that was named by its position. At
// the end of the path an array is not taken apart once more.
func (c *clause) atPosition(e data.Value, path []segment) bool {
	if len(path) == 0 {
		return c.holds(e)
	}
	switch e.Kind() {
	case data.Object:
		return c.inObject(e, path)
	case data.Array:
		return c.inArray(e, path)
	}
	return false
}

// holds is the condition itself, for one value; the absent one is missing.
func (c *clause) holds(v data.Value) bool {
	if c.want.Kind() == data.Null {
		return len(v) == 0 || v.Kind() == data.Null
	}
	return data.Equal(v, c.want)
}
