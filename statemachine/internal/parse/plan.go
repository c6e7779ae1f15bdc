package parse

import (
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

// The keys of a plan, and its words.
var (
	planKeys   = []string{"from", "to", "nodes", "timers", "assign"}
	timerRules = map[string]chart.TimerRule{"keep": chart.TimersKept, "restart": chart.TimersRestarted, "drop": chart.TimersDropped}
)

// ParsePlan reads a plan of migration, in YAML or JSON (statemachine/DEFINITION.md, "Migration"). version returns a version of the
// workflow, or an error that a fault shows. The error of ParsePlan is document.Faults.
func (p *Parser) ParsePlan(file string, text []byte, version func(number uint64) (*chart.Definition, error)) (*chart.Plan, error) {
	tree, err := document.Parse(file, text)
	if err != nil {
		return nil, err
	}
	b := p.builderOf(file)
	plan := b.plan(tree, version)
	return plan, b.Err()
}

func (b *builder) plan(n *document.Node, version func(uint64) (*chart.Definition, error)) *chart.Plan {
	p := &chart.Plan{}
	if !b.Mapping(n, planKeys) {
		return p
	}
	p.Old, p.New = b.planVersion(n, "from", version), b.planVersion(n, "to", version)
	p.Timers = clause.OneOf(&b.Reader, n.Field("timers"), timerRules)
	if at := n.Field("assign"); at != nil {
		p.Assign = []chart.Action{b.assign(at)}
	}
	if p.Old == nil || p.New == nil {
		return p
	}
	if p.Old.Version == p.New.Version {
		b.Advise(n.Field("to"), "give two versions of the workflow", "the instances have this version already")
	}
	p.Counterparts = make([]*chart.Node, len(p.Old.Nodes))
	for i, old := range p.Old.Nodes {
		if old.Machine == nil {
			continue // the root
		}
		switch machine := p.New.Machine(chart.MachineID(old.Machine.ID)); {
		case machine == nil:
		case old == old.Machine:
			p.Counterparts[i] = machine
		default:
			p.Counterparts[i] = p.New.Find(machine, old.ID)
		}
	}
	b.mapNodes(p, n.Field("nodes"))
	return p
}

func (b *builder) planVersion(n *document.Node, key string, version func(uint64) (*chart.Definition, error)) *chart.Definition {
	at := n.Field(key)
	if at == nil {
		b.Add(n, "%q is missing: the number of a version", key)
		return nil
	}
	number, ok := b.Int(at)
	if !ok {
		return nil
	}
	if number < 1 {
		b.Add(at, "version must be 1 or more")
		return nil
	}
	d, err := version(uint64(number))
	if err != nil {
		b.Add(at, "version %d: %v", number, err)
		return nil
	}
	return d
}

// mapNodes reads {machine: {old: new}}.
func (b *builder) mapNodes(p *chart.Plan, n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of state machines")
		return
	}
	for _, f := range n.Fields {
		from, to := b.machineOf(p.Old, f.Key), b.machineOf(p.New, f.Key)
		if f.Value.Kind != document.Mapping {
			b.Add(f.Value, "must be a mapping of nodes to nodes")
			continue
		}
		for _, pair := range f.Value.Fields {
			if from == nil || to == nil {
				break
			}
			old, next := b.nodeOf(p.Old, from, pair.Key), b.nodeOf(p.New, to, pair.Value)
			if old == nil || next == nil {
				continue
			}
			if old.IsLeaf() != next.IsLeaf() || !old.IsLeaf() && old.Kind != next.Kind {
				b.Advise(pair.Value, "map a node without nodes inside to another one without, and others to their own kind",
					"%q cannot be what %q was", data.Shorten(string(next.ID)), data.Shorten(string(old.ID)))
				continue
			}
			p.Counterparts[old.Index] = next
		}
	}
}

func (b *builder) machineOf(d *chart.Definition, at *document.Node) *chart.Node {
	if m := d.Machine(chart.MachineID(at.Text)); m != nil {
		return m
	}
	var known []string
	for _, m := range d.Machines {
		known = append(known, string(m.ID))
	}
	b.Suggest(at, at.Text, known, "version %d has no state machine %q", d.Version, data.Shorten(at.Text))
	return nil
}

func (b *builder) nodeOf(d *chart.Definition, machine *chart.Node, at *document.Node) *chart.Node {
	name := b.Text(at)
	if n := d.Find(machine, chart.NodeID(name)); n != nil {
		return n
	}
	if name == "" {
		return nil // a fault already, or nothing was written
	}
	var known []string
	for _, n := range d.Nodes[machine.Index+1 : machine.Last+1] {
		if !slices.Contains(known, string(n.ID)) {
			known = append(known, string(n.ID))
		}
	}
	b.Suggest(at, name, known, "version %d has no node %q in machine %q", d.Version, data.Shorten(name), machine.ID)
	return nil
}
