package endtoend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestInterfaceOperator(t *testing.T) { runLines(t, operatorLines()) }

func operatorLines() []line {
	return []line{
		{`statemachine/filter/FILTER.md, "Operators"`, "each does what it says", operatorsMatch},
		{`statemachine/filter/FILTER.md, "Faults"`, "forms that cannot be are refused", operatorsAreStrict},
		{`statemachine/filter/FILTER.md, "Limits"`, "text, depth, clauses, regular expressions", filterLimits},
	}
}

func operatorsMatch(t *testing.T, s *scene) {
	names := s.sampleInstances(t)
	for filter, want := range map[string][]string{
		`{"svcPublic.n":{"$eq":1}}`:                         {"one", "onedot"},
		`{"svcPublic.n":{"$ne":1}}`:                         {"large", "larger", "missing", "null", "text", "true"},
		`{"svcPublic.n":{"$gt":1}}`:                         {"large", "larger"},
		`{"svcPublic.n":{"$gt":9007199254740992}}`:          {"large"},
		`{"svcPublic.n":{"$gte":1}}`:                        {"large", "larger", "one", "onedot"},
		`{"svcPublic.n":{"$lt":2}}`:                         {"one", "onedot"},
		`{"svcPublic.n":{"$lte":9007199254740992}}`:         {"larger", "one", "onedot"},
		`{"svcPublic.n":{"$gte":1,"$lt":9007199254740993}}`: {"larger", "one", "onedot"},
		`{"svcPublic.n":{"$lte":null}}`:                     {"missing", "null"},
		`{"svcPublic.n":{"$lt":null}}`:                      {},
		`{"svcPublic.n":{"$in":[1,"1"]}}`:                   {"one", "onedot", "text"},
		`{"svcPublic.n":{"$in":[]}}`:                        {},
		`{"svcPublic.n":{"$nin":[1,"1",null]}}`:             {"large", "larger", "true"},
		`{"svcPublic.n":{"$exists":true}}`:                  {"large", "larger", "null", "one", "onedot", "text", "true"},
		`{"svcPublic.n":{"$exists":false}}`:                 {"missing"},
		`{"svcPublic.n":{"$type":"string"}}`:                {"text"},
		`{"svcPublic.n":{"$type":["bool","null"]}}`:         {"null", "true"},
		`{"svcPublic.n":{"$type":"number"}}`:                {"large", "larger", "one", "onedot"},
		`{"svcPublic.n":{"$type":"double"}}`:                {"onedot"},
		`{"svcPublic.t":{"$regex":"^x"}}`:                   {"one", "text"},
		`{"svcPublic.t":{"$regex":"^X$","$options":"i"}}`:   {"one", "onedot"},
		`{"svcPublic.l":{"$elemMatch":{"$gt":1,"$lt":3}}}`:  {"one", "onedot"},
		`{"svcPublic.l":{"$elemMatch":{"n":2}}}`:            {"large"},
		`{"svcPublic.l":{"$all":[2,1]}}`:                    {"one", "onedot"},
		`{"svcPublic.l":{"$all":[]}}`:                       {},
		`{"svcPublic.l":{"$size":2}}`:                       {"large", "one", "onedot", "text"},
		`{"svcPublic.l":{"$size":0}}`:                       {"true"},
		`{"svcPublic.n":{"$mod":[2,1]}}`:                    {"large", "one", "onedot"},
		`{"svcPublic.n":{"$bitsAllSet":1}}`:                 {"large", "one", "onedot"},
		`{"svcPublic.n":{"$bitsAnySet":[0]}}`:               {"large", "one", "onedot"},
		`{"svcPublic.n":{"$bitsAllClear":1}}`:               {"larger"},
		`{"svcPublic.n":{"$bitsAnyClear":3}}`:               {"large", "larger", "one", "onedot"},
		`{"svcPublic.n":{"$not":{"$gt":0}}}`:                {"missing", "null", "text", "true"},
		`{"$nor":[{"svcPublic.n":1},{"svcPublic.t":"x "}]}`: {"large", "larger", "missing", "null", "true"},
		`{"$or":[{"svcPublic.n":1,"svcPublic.t":"x"},` +
			`{"svcPublic.n":true}]}`: {"one", "true"},
		`{"$and":[{"svcPublic.n":{"$gte":1}},{"svcPublic.n":{"$lt":2}}]}`: {"one", "onedot"},
		`{"$comment":"why","svcPublic.n":1}`:                              {"one", "onedot"},
		`{"$or":[{}]}`:                                                    {"large", "larger", "missing", "null", "one", "onedot", "text", "true"},
		`{"svcPublic.n":{"$gt":1},"states":{"$elemMatch":{"stateMachineId":"main","nodeId":"a"}}}`: {"large", "larger"},
		`{"svcHistory":{"$size":1},"svcPublic.n":{"$gt":1}}`:                                       {"large", "larger"},
	} {
		if got := s.matching(t, s.bob, filter, names); !slices.Equal(got, want) {
			t.Errorf("filter %s: got %v, want %v", filter, got, want)
		}
	}
}

func operatorsAreStrict(t *testing.T, s *scene) {
	for _, condition := range []string{
		`{"$not":{}}`, `{"$not":"x"}`, `{"$not":1}`, `{"$size":-1}`, `{"$size":1.5}`, `{"$size":"1"}`, `{"$mod":[0,1]}`, `{"$mod":[1]}`, `{"$mod":[1,2,3]}`, `{"$mod":2}`,
		`{"$type":"nonsense"}`, `{"$type":[]}`, `{"$type":{}}`, `{"$regex":"(?=x)"}`, `{"$regex":"(?<!x)y"}`, `{"$regex":"(a)\\1"}`, `{"$regex":"("}`, `{"$regex":1}`,
		`{"$regex":"a","$options":"g"}`, `{"$options":"i"}`, `{"$in":1}`, `{"$in":{}}`, `{"$nin":null}`, `{"$in":[{"$regex":"a"}]}`, `{"$all":1}`,
		`{"$all":[1,{"$elemMatch":{}}]}`, `{"$elemMatch":1}`, `{"$elemMatch":[]}`, `{"$bitsAllSet":-1}`, `{"$bitsAllSet":"x"}`, `{"$gt":1,"x":2}`, `{"$eq":1,"$nonsense":2}`,
		`{"$and":[{"svcPublic.b":1}]}`,
	} {
		filter := `{"svcPublic.a":` + condition + `}`
		if reason := faultReason(s.ann.query(t, "plain", "filter="+escape(filter)), 400, "InvalidContent"); reason != "" {
			t.Errorf("filter %s: %s", filter, reason)
		}
	}
	for _, filter := range []string{
		`{"$and":[]}`, `{"$or":[]}`, `{"$nor":[]}`, `{"$and":{}}`, `{"$or":1}`, `{"$nor":[1]}`, `{"$and":[[]]}`, `{"$not":{"svcPublic.a":1}}`, `{"$eq":1}`, `{"$gt":1}`,
		`{"$or":[{"svcPublic.a":1},{"other":1}]}`, `{"$or":[{"svcPublic.a":1},{"svcPrivate.a":1}]}`, `{"$nor":[{"$and":[{"$where":1}]}]}`,
	} {
		if reason := faultReason(s.ann.query(t, "plain", "filter="+escape(filter)), 400, "InvalidContent"); reason != "" {
			t.Errorf("filter %s: %s", filter, reason)
		}
	}
}

// filterLimits asks what is just allowed and what is just too much.
func filterLimits(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", `{"svcPublic":{"a":"limits"}}`).record(t)
	sized := func(bytes int) string {
		filter := `{"svcPublic.a":"limits"}`
		return filter + strings.Repeat(" ", bytes-len(filter))
	}
	nested := func(depth int) string { // the object itself is one level
		return `{"svcPublic.a":{"$nin":` + strings.Repeat("[", depth-2) + strings.Repeat("]", depth-2) + `}}`
	}
	clauses := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"svcPublic.x%d":null`, i)
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	expression := func(bytes int) string {
		return `{"svcPublic.a":{"$regex":"^limits|` + strings.Repeat("x", bytes-len("^limits|")) + `"}}`
	}
	for what, c := range map[string]struct{ allowed, tooMuch string }{
		"bytes":                {sized(16 << 10), sized(16<<10 + 1)},
		"depth":                {nested(20), nested(21)},
		"clauses":              {clauses(64), clauses(65)},
		"a regular expression": {expression(1 << 10), expression(1<<10 + 1)},
	} {
		if got := ids(s.bob.query(t, "plain", "filter="+escape(c.allowed)).items(t)); !slices.Contains(got, r.ID) {
			t.Errorf("%s: what is just allowed finds %v, want the instance", what, got)
		}
		if reason := faultReason(s.bob.query(t, "plain", "filter="+escape(c.tooMuch)), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", what, reason)
		}
	}
	// What would be costly elsewhere ends soon.
	for _, filter := range []string{
		`{"svcPublic.a":{"$regex":"(a+)+$"}}`, `{"svcPublic.a":{"$regex":"(x*)*(x*)*(x*)*y"}}`, `{"svcPublic.a":{"$regex":"(.{1,100}){1,9}$"}}`,
	} {
		if a := s.bob.query(t, "plain", "filter="+escape(filter)); a.status != 200 && a.status != 400 {
			t.Errorf("filter %s: got %d %s", filter, a.status, clip(a.body))
		}
	}
	// The plus of a form is a blank, its escape is a plus.
	plus := s.ann.create(t, "plain", `{"svcPublic":{"a":"x+y"}}`).record(t)
	blank := s.ann.create(t, "plain", `{"svcPublic":{"a":"x y"}}`).record(t)
	for parameter, want := range map[string]string{
		"%7B%22svcPublic.a%22:%22x%2By%22%7D": plus.ID, "%7B%22svcPublic.a%22:%22x+y%22%7D": blank.ID, "%7B%22svcPublic.a%22:%22x%20y%22%7D": blank.ID,
	} {
		if got := ids(s.bob.query(t, "plain", "filter="+parameter).items(t)); !slices.Equal(got, []string{want}) {
			t.Errorf("filter=%s: got %v, want %s", parameter, got, want)
		}
	}
}
