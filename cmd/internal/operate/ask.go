package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/data"
)

// asking makes cmd a command that asks the service: it gets flags for the connection and the output, and explains
// errors.
func asking(cmd *cobra.Command, forms []string, do doing) *cobra.Command {
	return askingAt(cmd, connect.AddFlags(cmd), forms, do)
}

type doing = func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error

// operating is asking for those who run the service, who may ask it over the socket in its home.
func operating(cmd *cobra.Command, forms []string, do doing) *cobra.Command {
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	return askingAt(cmd, at, forms, do)
}

func askingAt(cmd *cobra.Command, at *connect.Connection, forms []string, do doing) *cobra.Command {
	out := &cli.Output{}
	if len(forms) > 0 {
		out = cli.AddOutput(cmd, forms...)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := at.Client(repetitions(cmd))
		if err != nil {
			return err
		}
		defer c.Close()
		return connect.Explain(hinted(cmd, c, args, do(cmd, c, out, args)))
	}
	connect.Complete(cmd, at)
	return cmd
}

func each(args []string, do func(arg string) error) error {
	var faults []error
	for _, arg := range args {
		faults = append(faults, do(arg))
	}
	return errors.Join(faults...)
}

// Who sends a file waits until --timeout rather than begin again.
func repetitions(cmd *cobra.Command) int {
	if cmd.Flags().Changed("file") {
		return math.MaxInt32
	}
	return 0
}

// hinted adds what was probably meant to the refusal of a name: it asks the service for workflows or events.
func hinted(cmd *cobra.Command, c *client.Client, args []string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	names := strings.Fields(cmd.Use)[1:]
	of := func(name string) string {
		if i := slices.Index(names, name); i >= 0 && i < len(args) {
			return args[i]
		}
		return ""
	}
	workflow, event := of("WORKFLOW"), of("EVENT")
	if workflow == "" {
		workflow = of("[WORKFLOW]")
	}
	meant := ""
	switch {
	case workflow == "":
	case refused.Status == http.StatusNotFound:
		meant = cli.DidYouMean(workflow, connect.WorkflowsKnown(cmd.Context(), c))
	case event != "" && slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict}, refused.Status) && !connect.IsDeclared(cmd.Context(), c, workflow, of("INSTANCE"), event):
		meant = cli.DidYouMean(event, connect.EventsKnown(cmd.Context(), c, workflow, of("INSTANCE")))
	}
	if meant == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, meant)
}

// labels are how people see the states and events of a workflow. Nil: by their ids.
type labels struct {
	of        *api.Presentation
	positions map[api.Position]string
	nodes     map[string]string // empty where machines have nodes of one id and several labels
	events    map[string]string
}

// A service that does not say it, as an older one, has none. Only tables show them: the other forms are what the
// service answered.
func labelsOf(ctx context.Context, c *client.Client, out *cli.Output, workflowID string, version uint64) (*labels, error) {
	if out.Form != cli.FormTable && out.Form != cli.FormLine {
		return nil, nil
	}
	of, err := c.Presentation(ctx, workflowID, version)
	if refused := (*client.Error)(nil); errors.As(err, &refused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newLabels(of), nil
}

func newLabels(of *api.Presentation) *labels {
	l := &labels{of: of, positions: map[api.Position]string{}, nodes: map[string]string{}, events: map[string]string{}}
	for _, n := range slices.Concat(of.Nodes, of.Compounds) {
		l.positions[api.Position{StateMachineID: n.StateMachineID, NodeID: n.NodeID}] = n.Label
		if before, ok := l.nodes[n.NodeID]; ok && before != n.Label {
			l.nodes[n.NodeID] = ""
		} else {
			l.nodes[n.NodeID] = n.Label
		}
	}
	for _, e := range of.Events {
		l.events[e.Name] = e.Label
	}
	return l
}

func (l *labels) stateText(states []api.Position) string {
	return statesText(states, func(s api.Position) string {
		if l == nil {
			return s.NodeID
		}
		return cmp.Or(l.positions[s], s.NodeID)
	})
}

// idText is stateText with the ids as well, which filters and plans need: "main: Waiting for approval (review)".
func (l *labels) idText(states []api.Position) string {
	return statesText(states, func(s api.Position) string {
		if l == nil || l.positions[s] == "" || l.positions[s] == s.NodeID {
			return s.NodeID
		}
		return l.positions[s] + " (" + s.NodeID + ")"
	})
}

func statesText(states []api.Position, called func(api.Position) string) string {
	texts := make([]string, len(states))
	for i, s := range states {
		texts[i] = s.StateMachineID + ": " + called(s)
	}
	return strings.Join(texts, ", ")
}

func (l *labels) nodeText(nodes []string) string {
	if l == nil {
		return strings.Join(nodes, ", ")
	}
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = cmp.Or(l.nodes[node], node)
	}
	return strings.Join(texts, ", ")
}

// nodeIn shows the node of a state machine that a task or a transition belongs to: one where instances stand, or one
// with others inside.
func (l *labels) nodeIn(at api.Position) string {
	if l == nil {
		return at.NodeID
	}
	return cmp.Or(l.positions[at], l.nodeText([]string{at.NodeID})) // NB: it is not known by its state machine where it is in a region
}

func (l *labels) eventText(e *api.HistoryEntry) string {
	if e.TransitionEvent == "" {
		return "(created)"
	}
	return l.event(e.TransitionEvent)
}

func (l *labels) event(name string) string {
	switch timed := timerEvent.FindStringSubmatch(name); {
	case l == nil:
		return name
	case l.events[name] != "":
		return l.events[name]
	case timed != nil:
		return "time ran out in " + l.nodeText(timed[1:])
	}
	return name
}

// timerEvent is the event of a timer of a node, with the node's name (statemachine/DEFINITION.md, "Timers").
var timerEvent = regexp.MustCompile(`^after\.[^.]+\.(.+)$`)

func (l *labels) timerText(t *api.Timer) string {
	switch {
	case l == nil:
		return t.Event
	case t.TargetID != "":
		return "changes to " + l.nodeText([]string{t.TargetID})
	case slices.Contains(t.Sends, "mail"):
		return "sends a mail"
	case slices.Contains(t.Sends, "webhook"):
		return "calls a webhook"
	case t.NodeID != nil:
		return "timer of " + l.nodeText([]string{*t.NodeID})
	}
	return l.event(t.Event)
}

// labelBook has the labels of workflows, each asked for once: of the newest version, whatever the instances run under.
type labelBook struct {
	ctx context.Context //nolint:containedctx // of a command
	c   *client.Client
	out *cli.Output
	by  map[string]*labels
}

func (b *labelBook) of(workflowID string) *labels {
	l, asked := b.by[workflowID]
	if !asked {
		l, _ = labelsOf(b.ctx, b.c, b.out, workflowID, 0)
		b.by[workflowID] = l
	}
	return l
}

func (l *labels) isTitled() bool { return l != nil && l.of.Titled }

func (l *labels) columns() (paths []data.Path, heads []string) {
	if l == nil {
		return nil, nil
	}
	for _, c := range l.of.Columns {
		if path, err := data.ParsePath(c.Path); err == nil {
			paths, heads = append(paths, path), append(heads, strings.ToUpper(c.Label))
		}
	}
	return paths, heads
}

type paging struct {
	limit  int
	cursor string
	all    bool
}

func (p *paging) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 100, "entries per page, 1 to 1000")
	cmd.Flags().BoolVar(&p.all, "all", false, "all pages")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "continue where an earlier page ended")
}

type listPage struct {
	items   []json.RawMessage
	rows    [][]string // of a table, one for each item
	raw     json.RawMessage
	next    string
	count   *int64
	explain json.RawMessage
}

// lister writes a list: one page, or page by page as they come.
type lister struct {
	cmd    *cobra.Command
	out    *cli.Output
	member string   // the list's name in JSON
	things string   // what it lists, for people
	head   []string // of a table

	begun   bool            // there was a page
	written int             // items so far
	count   *int64          // of the first page
	explain json.RawMessage // of the first page
}

func (l *lister) one(p *listPage) (err error) {
	if l.out.Form == cli.FormJSON || l.out.Form == cli.FormYAML {
		err = l.out.Document(p.raw)
	} else {
		err = l.whole(p)
	}
	if err == nil && p.next != "" {
		_, _ = fmt.Fprintf(l.cmd.ErrOrStderr(), "more: --all shows everything, --cursor %s the next page\n", client.Printable(p.next))
	}
	return err
}

// whole writes a list that is one page.
func (l *lister) whole(p *listPage) error {
	if err := l.page(p); err != nil {
		return err
	}
	return l.end()
}

// list writes what r asks for: one page, or all of them as they come. ready makes a page ready to be written.
func list[R, P any](l *lister, all bool, r R, one func(context.Context, R) (P, error), pages func(context.Context, R) iter.Seq2[P, error], ready func(P) *listPage) error {
	ctx := l.cmd.Context()
	if !all {
		page, err := one(ctx, r)
		if err != nil {
			return err
		}
		return l.one(ready(page))
	}
	for page, err := range pages(ctx, r) {
		if err == nil {
			err = l.page(ready(page))
		}
		if err != nil {
			return err
		}
	}
	return l.end()
}

func pageOf[T any](raw json.RawMessage, next string, entries []T, row func(*T) []string) *listPage {
	p := &listPage{raw: raw, next: next}
	for i := range entries {
		item, err := json.Marshal(&entries[i])
		if err != nil {
			panic(err) // it came as JSON
		}
		p.rows, p.items = append(p.rows, row(&entries[i])), append(p.items, item)
	}
	return p
}

// Behind the last one comes end.
func (l *lister) page(p *listPage) error {
	first := !l.begun
	if first {
		l.begun, l.count, l.explain = true, p.count, p.explain
	}
	if l.out.Form == cli.FormTable {
		if l.written == 0 && len(p.rows) > 0 {
			p.rows = append([][]string{l.head}, p.rows...)
		}
		l.written += len(p.rows)
		return l.out.Table(p.rows)
	}
	if first && l.out.Form == cli.FormJSON {
		if err := l.out.Raw([]byte(`{"` + l.member + `":[`)); err != nil {
			return err
		}
	}
	for _, item := range p.items {
		if err := l.item(item); err != nil {
			return err
		}
		l.written++
	}
	return nil
}

func (l *lister) item(item json.RawMessage) error {
	switch l.out.Form {
	case cli.FormJSONL:
		return l.out.Line(item)
	case cli.FormYAML:
		if l.written == 0 {
			if _, err := io.WriteString(l.out.To, l.member+":\n"); err != nil {
				return err
			}
		}
		return l.out.YAML(slices.Concat([]byte("["), item, []byte("]"))) // a sequence in a mapping is not indented
	}
	if l.written > 0 {
		item = append([]byte{','}, item...)
	}
	return l.out.Raw(item)
}

func (l *lister) end() error {
	tail := "" // as members of a JSON object
	if l.count != nil {
		tail += `,"count":` + strconv.FormatInt(*l.count, 10)
	}
	if l.explain != nil {
		tail += `,"explain":` + string(l.explain)
	}
	switch l.out.Form {
	case cli.FormJSON:
		return l.out.Raw([]byte("]" + tail + "}\n"))
	case cli.FormYAML:
		if l.written == 0 {
			tail = `,"` + l.member + `":[]` + tail
		}
		if tail == "" {
			return nil
		}
		return l.out.YAML([]byte("{" + tail[1:] + "}"))
	}
	if l.out.Form == cli.FormTable && l.written == 0 {
		cli.SayNone(l.cmd.ErrOrStderr(), l.things)
	}
	to, lines := l.out.To, ""
	if l.out.Form == cli.FormJSONL {
		to = l.cmd.ErrOrStderr() // a line is an instance, and nothing else
	}
	if l.count != nil {
		lines = fmt.Sprintf("count: %d\n", *l.count)
	}
	if l.explain != nil {
		lines += "explain: " + client.Printable(string(l.explain)) + "\n"
	}
	_, err := io.WriteString(to, lines)
	return err
}

func shownText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
