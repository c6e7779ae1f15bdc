package catalog

import (
	"maps"
	"slices"

	"troupe/statemachine"
)

// JobType is what a workflow says of a type of jobs.
type JobType struct {
	Workflow string
	*statemachine.JobType
}

// jobTypes are those of some current versions.
type jobTypes struct {
	of     *currentVersions
	byName map[string][]JobType
}

// JobTypes returns what the newest versions of workflows say of a type of jobs, by workflow.
func (c *Catalog) JobTypes(name string) []JobType {
	known := c.jobs.Load()
	if now := c.current.Load(); known == nil || known.of != now {
		known = c.readJobTypes()
		c.jobs.Store(known)
	}
	return known.byName[name]
}

func (c *Catalog) readJobTypes() *jobTypes {
	all := c.current.Load()
	out := &jobTypes{all, map[string][]JobType{}}
	for _, id := range slices.Sorted(maps.Keys(*all)) {
		o := (*all)[id]
		if o.Definition == nil && !c.mayBeTimed(versionKey{id, o.version}) {
			continue
		}
		d, err := c.rules(id, o) // NB: whoever is read for the first time is the reason to look again
		if err != nil {
			continue
		}
		for _, t := range d.JobTypes() {
			out.byName[t.Name] = append(out.byName[t.Name], JobType{id, t})
		}
	}
	return out
}
