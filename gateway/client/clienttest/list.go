package clienttest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// list answers GET instances. Errors are those that the interface promises.
func (s *Server) list(w http.ResponseWriter, r *http.Request, workflow string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if workflow != Workflow {
		refuse(w, 404, "NotFound", "there is nothing here, or nothing that you may see")
		return
	}
	if err := checkQuery(q); err != nil {
		refuse(w, 400, "InvalidContent", err.Error())
		return
	}
	all := s.matches(q.Get("filter"))
	if strings.HasPrefix(q.Get("sort"), "-") {
		slices.Reverse(all)
	}
	of := "instances " + q.Get("filter") + " " + q.Get("sort")
	from, to, next, err := cut(q, of, len(all), 0)
	if err != nil {
		refuse(w, 400, "InvalidContent", err.Error())
		return
	}
	records := []string{}
	for _, i := range all[from:to] {
		records = append(records, i.record(strings.Split(q.Get("fields"), ",")...))
	}
	body := `{"instances":[` + strings.Join(records, ",") + `]`
	if q.Has("limit") {
		body += nextMember(w, r, next)
	}
	if q.Get("count") == "true" {
		body += `,"count":` + strconv.Itoa(len(all))
	}
	if q.Get("explain") == "true" {
		body += fmt.Sprintf(`,"explain":{"index":null,"plan":"scan","keysRead":0,"recordsRead":%d,"matched":%d,"milliseconds":0.25,"considered":[]}`,
			len(s.mu.instances), to-from)
	}
	_, _ = fmt.Fprint(w, body+`}`)
}

// checkQuery refuses parameters that the interface does not have.
func checkQuery(q url.Values) error {
	for name, values := range q {
		if !slices.Contains([]string{"filter", "limit", "cursor", "sort", "fields", "count", "explain"}, name) || len(values) != 1 {
			return fmt.Errorf("the parameter %q is unknown or repeated", name)
		}
	}
	if !slices.Contains([]string{"", "_id", "-_id", "svcPublic.days", "-svcPublic.days"}, q.Get("sort")) {
		return fmt.Errorf("no index for sort")
	}
	if q.Has("fields") {
		for _, field := range strings.Split(q.Get("fields"), ",") {
			if !slices.Contains([]string{"svcHistory", "svcRedirect", "svcPrivate"}, field) {
				return fmt.Errorf("there is no field %q", field)
			}
		}
	}
	if q.Has("filter") && !json.Valid([]byte(q.Get("filter"))) {
		return fmt.Errorf("the filter is no JSON")
	}
	return nil
}

func (s *Server) matches(filter string) []*instance {
	var asked map[string]any
	_ = json.Unmarshal([]byte(filter), &asked) // checkQuery has looked at it
	var all []*instance
	for _, i := range s.mu.instances {
		if node, given := asked["states.nodeId"]; !given || node == i.node {
			all = append(all, i)
		}
	}
	return all
}

// cut finds the page that limit and cursor name in a list of n. standard is the
// limit when none is given; 0 is all.
func cut(q url.Values, of string, n, standard int) (from, to int, next string, err error) {
	limit := standard
	if q.Has("limit") {
		if limit, err = strconv.Atoi(q.Get("limit")); err != nil || limit < 1 || limit > 1000 {
			return 0, 0, "", fmt.Errorf("limit must be 1 to 1000")
		}
	}
	if q.Has("cursor") {
		text, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
		at, made, _ := strings.Cut(string(text), " ")
		if from, _ = strconv.Atoi(at); err != nil || made != of || limit == 0 || from > n {
			return 0, 0, "", fmt.Errorf("the cursor is not for this query")
		}
	}
	to = n
	if limit > 0 && from+limit < n {
		to = from + limit
		next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", to, of))
	}
	return from, to, next, nil
}

// nextMember is the member "next"; it sets the header Link beside.
func nextMember(w http.ResponseWriter, r *http.Request, next string) string {
	if next == "" {
		return `,"next":null`
	}
	q := r.URL.Query()
	q.Set("cursor", next)
	w.Header().Set("Link", "<"+r.URL.Path+"?"+q.Encode()+`>; rel="next"`)
	return `,"next":"` + next + `"`
}

func (s *Server) history(w http.ResponseWriter, r *http.Request, i *instance) {
	from, to, next, err := cut(r.URL.Query(), "history "+i.id, len(i.history), 100)
	if err != nil {
		refuse(w, 400, "InvalidContent", err.Error())
		return
	}
	_, _ = fmt.Fprint(w, `{"history":[`+strings.Join(i.history[from:to], ",")+`]`+nextMember(w, r, next)+`}`)
}
