package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/client"
)

type paging struct {
	limit  int
	cursor string
	all    bool
}

func (p *paging) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 100, "entries of one page, 1 to 1000")
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
	head   []string // of a table

	begun   bool            // there was a page
	written int             // items so far
	count   *int64          // of the first page
	explain json.RawMessage // of the first page
}

func (l *lister) one(p *listPage) (err error) {
	if l.out.Form == cli.FormJSON || l.out.Form == cli.FormYAML {
		err = l.out.Document(p.raw)
	} else if err = l.page(p); err == nil {
		err = l.end()
	}
	if err == nil && p.next != "" {
		_, _ = fmt.Fprintf(l.cmd.ErrOrStderr(), "there is more: --all shows everything, --cursor %s the next page\n", client.Printable(p.next))
	}
	return err
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
		if first {
			p.rows = append([][]string{l.head}, p.rows...)
		}
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
