package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"troupe/gateway/client"
	"troupe/statemachine/data"
)

func newInstanceList() *cobra.Command {
	var r client.ListRequest
	var filter string
	var all bool
	var columns []string
	var incidents bool
	cmd := &cobra.Command{
		Use:   "list [WORKFLOW]",
		Short: "List the instances of a workflow that you may read",
		Long: "List the instances of a workflow that you may read: one page, or with --all every one, page by page. " +
			"With -o json and -o yaml a page is what the service answered.",
		Example: "  troupe instance list leave-request --filter '{\"states.nodeId\": \"review\"}' --columns svcPublic.requester,svcPublic.days\n" +
			"  troupe instance list leave-request --all -o jsonl",
		Args: arguments,
	}
	f := cmd.Flags()
	f.StringVar(&filter, "filter", "", "only those that match: a JSON filter, @file, or - for standard input")
	f.IntVar(&r.Limit, "limit", 50, "instances of one page, 1 to 1000 (with --all: 500); 0: all in one answer")
	f.BoolVar(&all, "all", false, "all pages")
	f.StringVar(&r.Cursor, "cursor", "", "continue where an earlier page ended")
	f.StringVar(&r.Sort, "sort", "", "order: _id or an indexed path; - in front of it: descending (default _id)")
	f.StringSliceVar(&r.Fields, "fields", nil, "ask for svcHistory, svcRedirect, svcPrivate, title as well")
	f.BoolVar(&r.Count, "count", false, "count all matches")
	f.BoolVar(&r.Explain, "explain", false, "explain how they were found (needs mod-workflows)")
	f.StringSliceVar(&columns, "columns", nil, "paths to show in a table, such as svcPublic.days (default: those of the definition)")
	f.BoolVar(&incidents, "incidents", false, "list incidents of all workflows instead, as troupe incident list")
	return asking(cmd, anyForm, func(cmd *cobra.Command, c *client.Client, out *output, args []string) error {
		if incidents || len(args) == 0 {
			if !incidents {
				return usageError{errors.New("WORKFLOW is missing: troupe instance list WORKFLOW")}
			}
			if len(args) > 0 {
				return usageError{errors.New("--incidents lists those of all workflows")}
			}
			return listIncidents(cmd, c, out, &paging{limit: r.Limit, cursor: r.Cursor, all: all})
		}
		if len(columns) > 0 && out.form != formTable {
			return usageError{errors.New("--columns is for tables")}
		}
		paths, err := parseColumns(columns)
		if err != nil {
			return err
		}
		text, err := jsonInput(cmd, "filter", filter)
		if err != nil {
			return err
		}
		r.WorkflowID, r.Filter = args[0], string(text)
		seen, err := labelsOf(cmd.Context(), c, out, r.WorkflowID, 0)
		if err != nil {
			return err
		}
		if seen.isTitled() && !slices.Contains(r.Fields, "title") {
			r.Fields = append(r.Fields, "title")
		}
		shown := &instanceRows{labels: seen, paths: paths}
		heads := columns
		if len(columns) == 0 {
			shown.paths, heads = seen.columns()
		}
		if all && !cmd.Flags().Changed("limit") {
			r.Limit = 0 // the client's choice
		}
		l := &lister{cmd: cmd, out: out, member: "instances", head: shown.head(heads)}
		if !all {
			page, err := c.Instances(cmd.Context(), r)
			if err != nil {
				return err
			}
			return l.one(shown.page(page))
		}
		return writePages(l, c.InstancePages(cmd.Context(), r), shown.page)
	})
}

// instanceRows make rows of a table of instances.
type instanceRows struct {
	labels *labels
	paths  []data.Path // of the columns
}

// head is that of the table; columns are the heads behind what all tables have.
func (r *instanceRows) head(columns []string) []string {
	head := []string{"ID"}
	if r.labels.isTitled() {
		head = append(head, "TITLE")
	}
	return slices.Concat(head, []string{"STATES"}, columns)
}

func (r *instanceRows) page(page *client.InstancePage) *listPage {
	p := &listPage{raw: page.Raw, next: page.Next, count: page.Count, explain: page.Explain}
	for i := range page.Instances {
		instance := &page.Instances[i]
		row := []string{instance.ID}
		if r.labels.isTitled() {
			row = append(row, instance.Title)
		}
		states := r.labels.stateText(instance.States)
		if instance.Cancelled {
			states += "; cancelled"
		}
		row = append(row, states)
		for _, path := range r.paths {
			row = append(row, cellAt(instance.Raw, path))
		}
		p.rows, p.items = append(p.rows, row), append(p.items, instance.Raw)
	}
	return p
}

func newInstanceHistory() *cobra.Command {
	var r client.HistoryRequest
	var all bool
	cmd := &cobra.Command{
		Use:   "history WORKFLOW INSTANCE",
		Short: "Show the history of an instance, oldest entry first or newest first",
		Example: "  troupe instance history leave-request 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance history leave-request 01M7YZAB2GNTJFQE62690KHSQT --newest-first --limit 10\n" +
			"  troupe instance history leave-request 01M7YZAB2GNTJFQE62690KHSQT --all -o jsonl",
		Args: arguments,
	}
	cmd.Flags().BoolVar(&r.NewestFirst, "newest-first", false, "from the newest entry to the oldest")
	cmd.Flags().IntVar(&r.Limit, "limit", 100, "entries of one page, 1 to 1000 (with --all: 500); 0: the default")
	cmd.Flags().BoolVar(&all, "all", false, "all pages")
	cmd.Flags().StringVar(&r.Cursor, "cursor", "", "continue where an earlier page ended")
	cmd.Flags().BoolVar(&r.Data, "data", false, "what the events brought, too")
	return asking(cmd, anyForm, func(cmd *cobra.Command, c *client.Client, out *output, args []string) error {
		r.WorkflowID, r.InstanceID = args[0], args[1]
		if all && !cmd.Flags().Changed("limit") {
			r.Limit = 0 // the client's choice
		}
		l := &lister{cmd: cmd, out: out, member: "history", head: historyHead}
		if r.Data {
			l.head = append(slices.Clone(historyHead), "DATA")
		}
		seen, err := labelsOf(cmd.Context(), c, out, r.WorkflowID, 0)
		if err != nil {
			return err
		}
		withData := r.Data
		r.Data = withData || out.form == formTable // it says which entries are attempts
		ready := func(page *client.HistoryPage) *listPage { return historyPage(page, withData, seen) }
		if !all {
			page, err := c.History(cmd.Context(), r)
			if err != nil {
				return err
			}
			return l.one(ready(page))
		}
		return writePages(l, c.HistoryPages(cmd.Context(), r), ready)
	})
}

func historyPage(page *client.HistoryPage, withData bool, seen *labels) *listPage {
	p := &listPage{raw: page.Raw, next: page.Next}
	for i := range page.Entries {
		e := &page.Entries[i].HistoryEntry
		row := historyRow(e, seen)
		if withData {
			row = append(row, cmp.Or(string(e.DataDigest), string(e.Data)))
		}
		p.rows = append(p.rows, row)
		p.items = append(p.items, page.Entries[i].Raw)
	}
	return p
}

// listPage is a page of any list, ready to be written.
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
	out    *output
	member string   // the list's name in JSON
	head   []string // of a table

	begun   bool            // there was a page
	written int             // items so far
	count   *int64          // of the first page
	explain json.RawMessage // of the first page
}

// one writes a single page and says how to get the next.
func (l *lister) one(p *listPage) (err error) {
	if l.out.form == formJSON || l.out.form == formYAML {
		err = l.out.document(p.raw)
	} else if err = l.page(p); err == nil {
		err = l.end()
	}
	if err == nil && p.next != "" {
		_, _ = fmt.Fprintf(l.cmd.ErrOrStderr(), "there is more: --all shows everything, --cursor %s the next page\n", client.Printable(p.next))
	}
	return err
}

// writePages writes all pages as they come. ready makes one ready to be written.
func writePages[P any](l *lister, pages iter.Seq2[P, error], ready func(P) *listPage) error {
	for page, err := range pages {
		if err == nil {
			err = l.page(ready(page))
		}
		if err != nil {
			return err
		}
	}
	return l.end()
}

// page writes a page. Behind the last one comes end.
func (l *lister) page(p *listPage) error {
	first := !l.begun
	if first {
		l.begun, l.count, l.explain = true, p.count, p.explain
	}
	if l.out.form == formTable {
		if first {
			p.rows = append([][]string{l.head}, p.rows...)
		}
		return l.out.table(p.rows)
	}
	if first && l.out.form == formJSON {
		if err := l.out.raw([]byte(`{"` + l.member + `":[`)); err != nil {
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

// item writes one element in a form that is no table.
func (l *lister) item(item json.RawMessage) error {
	switch l.out.form {
	case formJSONL:
		return l.out.line(item)
	case formYAML:
		if l.written == 0 {
			if _, err := io.WriteString(l.out.to, l.member+":\n"); err != nil {
				return err
			}
		}
		return l.out.yaml(slices.Concat([]byte("["), item, []byte("]"))) // a sequence in a mapping is not indented
	}
	if l.written > 0 {
		item = append([]byte{','}, item...)
	}
	return l.out.raw(item)
}

// end writes what comes behind the last element.
func (l *lister) end() error {
	tail := "" // as members of a JSON object
	if l.count != nil {
		tail += `,"count":` + strconv.FormatInt(*l.count, 10)
	}
	if l.explain != nil {
		tail += `,"explain":` + string(l.explain)
	}
	switch l.out.form {
	case formJSON:
		return l.out.raw([]byte("]" + tail + "}\n"))
	case formYAML:
		if l.written == 0 {
			tail = `,"` + l.member + `":[]` + tail
		}
		if tail == "" {
			return nil
		}
		return l.out.yaml([]byte("{" + tail[1:] + "}"))
	}
	to, lines := l.out.to, ""
	if l.out.form == formJSONL {
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
