package statemachine

import "troupe/statemachine/data"

// applyData brings event.data into the instance, once, after selection and
// before anything is left (definition: "Data, timers, webhooks, versions"). The
// first picked transition that says how decides, then the event's contract,
// then the default: data that holds only svcPublic and svcPrivate objects is
// merged into each, everything else into svcPublic (decisions: "event.data").
func (m *move) applyData(picked []*transition, c *contract, given data.Value) error {
	into, how := rootUnset, applyUnset
	for _, t := range picked {
		if into == rootUnset {
			into = t.into
		}
		if how == applyUnset {
			how = t.apply
		}
	}
	if c != nil {
		if into == rootUnset {
			into = c.into
		}
		if how == applyUnset {
			how = c.apply
		}
	}
	if given.Kind() != data.Object || how == applyNone {
		return nil
	}
	if into != rootUnset {
		return m.applyTo(into, how, given)
	}
	if public, private, ok := bothRoots(given); ok {
		if err := m.applyTo(rootPublic, how, public); err != nil {
			return err
		}
		return m.applyTo(rootPrivate, how, private)
	}
	return m.applyTo(rootPublic, how, given)
}

// bothRoots splits data that has no member but svcPublic and svcPrivate
// objects. An empty object splits into nothing.
func bothRoots(given data.Value) (public, private data.Value, ok bool) {
	for key, v := range given.Members() {
		if v.Kind() != data.Object {
			return nil, nil, false
		}
		switch key {
		case "svcPublic":
			public = v
		case "svcPrivate":
			private = v
		default:
			return nil, nil, false
		}
	}
	return public, private, true
}

func (m *move) applyTo(r root, how applyRule, v data.Value) error {
	if v.Kind() == data.Absent {
		return nil
	}
	if how != applyReplace {
		old := m.in.Public
		if r == rootPrivate {
			old = m.in.Private
		}
		v = data.Merge(old, v)
	}
	if err := m.setDocument(r, v); err != nil {
		return err
	}
	return m.d.checkData(&m.in)
}
