package catalog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"

	"troupe/persistence/key"
	"troupe/statemachine"
)

// JobType is what a workflow says of a type of jobs.
type JobType struct {
	Workflow string
	*statemachine.JobType
}

// jobTypes are those of some current versions.
type jobTypes struct {
	of      *currentVersions
	byName  map[string][]JobType
	dropped *dropped
}

// dropped are the types that only earlier versions have, as far as somebody has asked for them.
type dropped struct {
	below map[string]uint64 // the numbers of the current versions that can be read: rights are unknown without
	mu    sync.Mutex
	older []versionKey // that may have jobs, the newest first; nil: nobody has looked
	known map[string][]JobType
}

// JobTypes returns what workflows say of a type of jobs, by workflow: each says what its newest version that has the type does,
// so that jobs of a type that was dropped since can still be done.
func (c *Catalog) JobTypes(name string) []JobType {
	known := c.jobs.Load()
	if now := c.current.Load(); known == nil || known.of != now {
		known = c.readJobTypes(known)
		c.jobs.Store(known)
	}
	return known.dropped.join(c, name, known.byName[name])
}

// JobType is what a workflow says of a type of jobs; nil without such jobs. The errors are those of Newest.
func (c *Catalog) JobType(workflow, name string) (*statemachine.JobType, error) {
	if _, err := c.Newest(workflow); err != nil {
		return nil, err
	}
	for _, t := range c.JobTypes(name) {
		if t.Workflow == workflow {
			return t.JobType, nil
		}
	}
	return nil, nil
}

func (c *Catalog) readJobTypes(before *jobTypes) *jobTypes {
	all := c.current.Load()
	out := &jobTypes{all, map[string][]JobType{}, &dropped{below: map[string]uint64{}, known: map[string][]JobType{}}}
	for _, id := range slices.Sorted(maps.Keys(*all)) {
		o := (*all)[id]
		k := versionKey{id, o.version}
		if o.Definition == nil && !c.mayBeTimed(k) {
			if _, has := c.timeless.Load(k); has {
				out.dropped.below[id] = o.version
			}
			continue
		}
		d, err := c.rules(id, o) // NB: whoever is read for the first time is the reason to look again
		if err != nil {
			continue
		}
		out.dropped.below[id] = o.version
		for _, t := range d.JobTypes() {
			out.byName[t.Name] = append(out.byName[t.Name], JobType{id, t})
		}
	}
	if before != nil && maps.Equal(before.dropped.below, out.dropped.below) {
		out.dropped = before.dropped
	}
	return out
}

// join adds to the types of a name in the current versions those of earlier ones of other workflows.
func (d *dropped) join(c *Catalog, name string, current []JobType) []JobType {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.older == nil {
		d.older = d.readOlder(c)
	}
	all, ok := d.known[name]
	switch {
	case len(d.older) == 0:
		return current
	case ok:
		return all
	}
	all = slices.Clip(current)
	for _, k := range d.older {
		if slices.ContainsFunc(all, func(t JobType) bool { return t.Workflow == k.workflow }) || !c.mayName(k, name) {
			continue
		}
		if of, err := c.Version(k.workflow, k.version); err == nil && of.Job(name) != nil {
			all = append(all, JobType{k.workflow, of.Job(name)})
		}
	}
	slices.SortFunc(all, func(a, b JobType) int { return cmp.Compare(a.Workflow, b.Workflow) })
	if len(all) > 0 { // NB: names that nobody knows would fill the memory
		d.known[name] = all
	}
	return all
}

// readOlder looks for versions before the current ones; nil when they cannot be read now.
func (d *dropped) readOlder(c *Catalog) (older []versionKey) {
	published, err := c.published(key.DefinitionsPrefix(nil))
	if err != nil {
		return nil
	}
	older = []versionKey{}
	for _, workflow := range slices.Sorted(maps.Keys(published)) {
		for _, version := range slices.Backward(slices.Sorted(slices.Values(published[workflow]))) {
			if k := (versionKey{workflow, version}); version < d.below[workflow] && c.mayName(k, "jobs") {
				older = append(older, k)
			}
		}
	}
	return older
}

// mayName is false for a version whose text lacks a name. NB: most do, and to compile each would take minutes.
func (c *Catalog) mayName(k versionKey, name string) bool {
	text, err := c.store.Load(key.Definition(nil, k.workflow, k.version))
	return err == nil && bytes.Contains(text, []byte(name))
}
