package expr

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
)

func mustData(tb testing.TB, text string) data.Value {
	tb.Helper()
	v, err := data.Clean([]byte(text))
	if err != nil {
		tb.Fatalf("test data %s: %v", text, err)
	}
	return v
}

func newEnv(tb testing.TB) *Env {
	tb.Helper()
	e, err := New(Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

const samplePublic = `{"amount":1500,"rate":1.5,"requester":"ada","items":[{"qty":2,"name":"b"},{"qty":3,"name":"a"}],` +
	`"tags":["x","y"],"nothing":null,"big":12345678901234567890,"whole":1500.0,"address":{"zip":"1010","city":"Wien"},` +
	`"flag":true,"mixed":[3,1.5,2],"text":"Grüße","empty":{},"none":[]}`

// sample returns a scope with something behind every name.
func sample(tb testing.TB) *Scope {
	tb.Helper()
	return &Scope{
		Event:   &Event{Name: "approve", ID: "e1", Data: mustData(tb, `{"comment":"ok","address":{"z":1,"a":[1, 2.50]}}`)},
		Public:  mustData(tb, samplePublic),
		Private: mustData(tb, `{"autoLimit":2000,"secret":"s"}`),
		User:    User{ID: "bob", Name: "Bob Ray", Roles: []string{"clerk", "manager"}, Privileges: []string{"mod-form"}},
		Instance: Instance{
			ID: "01ARZ", WorkflowID: "invoice", Version: 3, CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600)),
			States: func() data.Value { return mustData(tb, `[{"stateMachineId":"main","nodeId":"review"}]`) },
		},
		Now: time.Date(2026, 3, 2, 8, 30, 0, 250e6, time.UTC),
		In:  func(node string) bool { return node == "review" || node == "main.review" },
	}
}

// outcome evaluates src and returns its JSON, or the error's text.
func outcome(tb testing.TB, e *Env, src string, s *Scope) string {
	tb.Helper()
	p, err := e.Compile(src)
	if err != nil {
		return "compile: " + err.Error()
	}
	v, err := p.Value(s)
	if err != nil {
		assert.ErrorIs(tb, err, ErrEval, "%s: error", src)
		return strings.TrimPrefix(err.Error(), ErrEval.Error()+": ")
	}
	return string(v)
}

// expression is one of which a test knows the outcome.
type expression struct{ sentence, src, want string }

// hold evaluates expressions. Of an outcome that says that there is no overload the
// rest does not count.
func hold(t *testing.T, e *Env, s *Scope, all []expression) {
	t.Helper()
	for _, c := range all {
		got := outcome(t, e, c.src, s)
		vague := strings.HasPrefix(c.want, "no such overload") && strings.HasPrefix(got, c.want)
		assert.False(t, got != c.want && !vague, "%s: %s\n got %s\nwant %s", c.sentence, c.src, got, c.want)
	}
}

func TestExpressions(t *testing.T) {
	hold(t, newEnv(t), sample(t), []expression{
		{"an int and a double multiply", `svcPublic.amount * svcPublic.rate`, `2250`},
		{"an int and a double add", `svcPublic.amount + 0.5`, `1500.5`},
		{"a double and an int subtract", `svcPublic.rate - 1`, `0.5`},
		{"an int and a double divide", `svcPublic.amount / 0.5`, `3000`},
		{"two ints divide as ints", `svcPublic.amount / 1000`, `1`},
		{"literals mix", `1 + 1.5`, `2.5`},
		{"a number written 1500.0 is an int", `type(svcPublic.whole) == int`, `true`},
		{"an integer beyond int64 is a double", `type(svcPublic.big) == double`, `true`},
		{"an integer beyond int64 keeps its digits when taken whole", `svcPublic.big`, `12345678901234567890`},
		{"an int compares with a double", `svcPublic.amount > 1499.5`, `true`},
		{"a double equals an int of the data", `svcPublic.rate * 2 == 3`, `true`},
		{"an int equals a double of the same value", `svcPublic.amount == dyn(1500.0)`, `true`},
		{"an overflow is an error", `9223372036854775807 + svcPublic.amount`, `integer overflow`},
		{"division by zero is an error", `svcPublic.amount / 0`, `division by zero`},
		{"division of doubles by zero has no JSON form", `svcPublic.rate / 0.0`, `no JSON form: +Inf`},
		{"text and number do not add", `svcPublic.requester + 1`, `no such overload`},
		{"a product of doubles is the decimal one", `438.76 * 7`, `3071.32`},
		{"of an int of the data and a double", `0.1 * svcPublic.amount`, `150`},
		{"constants are folded the same way", `0.1 * 3 == 0.3 && 0.1 + 0.2 == 0.3 && 1.1 * 1.1 == 1.21`, `true`},
		{"a difference", `0.3 - 0.1`, `0.2`},
		{"a quotient", `3071.32 / 7`, `438.76`},
		{"a remainder", `0.3 % 0.1 + 7 % 2 + 7.5 % 2`, `2.5`},
		{"the remainder of the int 0 is an error", `svcPublic.amount % 0`, `modulus by zero`},
		{"a root", `math.sqrt(1.21) + math.sqrt(4)`, `3.1`},
		{"the least of results", `math.least(0.1 * 3, 0.31)`, `0.3`},
		{"a sum is rounded once", `[0.1, 1e20, -1e20].sum()`, `0.1`},
		{"a sum of desks", `lists.range(7).map(i, 438.76).sum()`, `3071.32`},
		{"a sum of products of the data", `svcPublic.items.map(i, i.qty * 1.1).sum()`, `5.5`},
		{"a sum of ints is an int", `type(sum([1, 2])) == int && sum([1, 2]) == 3 && [].sum() == 0`, `true`},
		{"a sum of ints that overflows is an error", `sum([9223372036854775807, 1])`, `integer overflow`},
		{"a sum of what is no number is an error", `sum([1, "a"])`, `no such overload`},
		{"a sum of nothing but a number is an error", `svcPublic.amount.sum()`, `no such overload`},

		{"rounding takes an int, which JSON may have made", `math.round(svcPublic.amount) + math.ceil(svcPublic.rate)`, `1502`},

		{"a member is selected", `svcPublic.address.city`, `"Wien"`},
		{"a member is indexed", `svcPublic["address"]["zip"]`, `"1010"`},
		{"an element is indexed", `svcPublic.items[1].name`, `"a"`},
		{"a missing key is an error", `svcPublic.nope`, `no such key: nope`},
		{"a missing key below a missing one is an error", `svcPublic.nope.x`, `no such key: nope`},
		{"an index beyond the end is an error", `svcPublic.items[2]`, `index out of bounds: 2`},
		{"a select in a scalar is an error", `svcPublic.amount.x`, `no such key: x`},
		{"has sees a key", `has(svcPublic.address.zip)`, `true`},
		{"has does not see a missing key", `has(svcPublic.address.street)`, `false`},
		{"has sees a null", `has(svcPublic.nothing)`, `true`},
		{"an optional select finds", `svcPublic.?address.city.orValue("")`, `"Wien"`},
		{"an optional select falls back", `svcPublic.?nope.city.orValue("nowhere")`, `"nowhere"`},
		{"an optional index falls back", `svcPublic.items[?7].name.orValue("-")`, `"-"`},
		{"an empty optional is null", `svcPublic.?nope`, `null`},
		{"a full optional is its value", `svcPublic.?address`, `{"zip":"1010","city":"Wien"}`},
		{"null equals null", `svcPublic.nothing == null`, `true`},
		{"a value does not equal null", `svcPublic.amount != null`, `true`},
		{"null is not less than a number", `svcPublic.nothing < 1`, `no such overload: <`},

		{"a path keeps its bytes", `event.data.address`, `{"z":1,"a":[1,2.50]}`},
		{"a path through a bracket keeps its bytes", `event.data["address"]`, `{"z":1,"a":[1,2.50]}`},
		{"a chosen object keeps its bytes", `true ? event.data.address : null`, `{"z":1,"a":[1,2.50]}`},
		{"an object inside a map keeps its bytes", `{"b": event.data.address, "a": 1}`, `{"a":1,"b":{"z":1,"a":[1,2.50]}}`},
		{"a map's keys ascend", `{"b": 1, "a": 2, "c": [1.50, "x"]}`, `{"a":2,"b":1,"c":[1.5,"x"]}`},
		{"a double is written short", `svcPublic.rate * 1000`, `1500`},
		{"a negative zero is zero", `-0.0`, `0`},
		{"a timestamp is RFC 3339 in UTC", `instance.createdAt`, `"2026-03-01T11:00:00Z"`},
		{"a timestamp keeps its fraction", `now`, `"2026-03-02T08:30:00.25Z"`},
		{"a duration is seconds", `duration("1h") + duration("500ms")`, `"3600.5s"`},
		{"a negative duration is seconds", `instance.createdAt - now`, `"-77400.25s"`},
		{"bytes have no form", `b"x"`, `no JSON form: bytes`},
		{"a type has no form", `type(1)`, `no JSON form: type`},
		{"a map with an int key has no form", `{1: 2}`, `no JSON form: a map with a key of type int`},
		{"a uint is an integer", `18446744073709551615u`, `18446744073709551615`},

		{"user has an id", `user.id`, `"bob"`},
		{"user has a name", `user.name`, `"Bob Ray"`},
		{"user has roles", `user.roles`, `["clerk","manager"]`},
		{"a role is found", `"manager" in user.roles`, `true`},
		{"a role is not found", `"boss" in user.roles`, `false`},
		{"user can be taken whole", `user`, `{"id":"bob","name":"Bob Ray","privileges":["mod-form"],"roles":["clerk","manager"]}`},
		{"event has a name", `event.name + "/" + event.id`, `"approve/e1"`},
		{"event can be taken whole", `event`, `{"data":{"comment":"ok","address":{"z":1,"a":[1,2.50]}},"id":"e1","name":"approve"}`},
		{"instance has states", `instance.states[0].nodeId`, `"review"`},
		{"instance has a version", `instance.version + 1`, `4`},
		{"a fixed offset moves the clock", `now.getHours("+02:00")`, `10`},
		{"now minus a timestamp is a duration", `now - instance.createdAt < duration("24h")`, `true`},
		{"In finds a node", `In("review") && In("main.review")`, `true`},
		{"In does not find a node", `In("main.draft")`, `false`},
		{"In takes a computed name", `In("main." + instance.states[0].nodeId)`, `true`},
		{"In refuses a number from the data", `In(svcPublic.amount)`, `no such overload: In(int)`},

		{"a loop goes over a list", `svcPublic.items.all(i, i.qty > 1)`, `true`},
		{"a loop filters and maps", `svcPublic.items.filter(i, i.qty > 2).map(i, i.name)`, `["a"]`},
		{"a loop goes over keys in stored order", `svcPublic.address.map(k, k)`, `["zip","city"]`},
		{"a loop goes over a written map in ascending order", `{"b": 1, "a": 2}.map(k, k)`, `["a","b"]`},
		{"in finds a text in a list", `"y" in svcPublic.tags`, `true`},
		{"in finds a number of the other kind", `dyn(2.0) in svcPublic.mixed`, `true`},
		{"in finds a key", `"zip" in svcPublic.address`, `true`},
		{"lists concatenate", `svcPublic.tags + ["z"]`, `["x","y","z"]`},
		{"objects equal whatever their order", `svcPublic.address == {"city": "Wien", "zip": "1010"}`, `true`},
		{"objects differ by a value", `svcPublic.address == {"city": "Graz", "zip": "1010"}`, `false`},
		{"lists equal by position", `svcPublic.mixed == [3, 1.5, 2.0]`, `true`},
		{"size counts", `size(svcPublic.items) + size(svcPublic.address) + size(svcPublic.text)`, `9`},
		{"bind names a value", `cel.bind(x, svcPublic.amount * 2, x + x)`, `6000`},

		{"sort takes ints and doubles together", `svcPublic.mixed.sort()`, `[1.5,2,3]`},
		{"sortBy sorts by a key", `svcPublic.items.sortBy(i, i.name).map(i, i.qty)`, `[3,2]`},
		{"sort refuses different types", `[1, "a", svcPublic.rate].sort()`, `values of different types cannot be sorted`},
		{"distinct keeps the first", `[1, 1.0, 2, "a", "a", [1], [1.0]].distinct()`, `[1,2,"a",[1]]`},
		{"sets work on data", `sets.contains(svcPublic.tags, ["y"]) && sets.intersects(["q", "x"], svcPublic.tags)`, `true`},
		{"hasAll works on data", `user.roles.hasAll(["clerk"]) && !user.roles.hasAny(["boss"])`, `true`},
		{"join puts the separator between", `["", "a", "b"].join("-")`, `"-a-b"`},
		{"replace replaces", `"banana".replace("a", "oo")`, `"boonoonoo"`},
		{"replace obeys its limit", `"banana".replace("a", "oo", 1)`, `"boonana"`},
		{"replace of the empty text goes between characters", `"äb".replace("", "-")`, `"-ä-b-"`},
		{"format formats", `"%s: %.2f %d".format(["x", 1.5, 3])`, `"x: 1.50 3"`},
		{"format prints data", `"%s".format([svcPublic.tags])`, `"[x, y]"`},
		{"quote quotes", `strings.quote("a\"b")`, `"\"a\\\"b\""`},
		{"matches with a written pattern", `svcPublic.requester.matches("^a.a$")`, `true`},
		{"matches with a pattern from the data", `"ada!".matches(svcPublic.requester)`, `true`},
		{"range counts", `lists.range(3)`, `[0,1,2]`},
		{"greatest mixes", `math.greatest(svcPublic.rate, svcPublic.amount)`, `1500`},
		{"an error on one side of or is absorbed", `svcPublic.nope || true`, `true`},
		{"a map key from the data may not be a list", `{svcPublic.tags: 1}`, `unsupported type of a map key: list`},

		{"a field is read through a value of unknown type", `dyn(user).id + dyn(user)["id"]`, `"bobbob"`},
		{"a field of an unknown type is missing", `dyn(user).nope`, `no such key: nope`},
		{"a variable has no key that is no text", `dyn(user)[1]`, `no such key: 1`},
		{"has looks through a value of unknown type", `has(dyn(user).id) && !has(dyn(user).nope)`, `true`},
		{"a field is read from a list", `[user][0].id`, `"bob"`},
		{"a variable is itself", `user == user && [user] == [user] && dyn(user) != dyn(event)`, `true`},
		{"a variable has a type", `type(user) == type(user) && type(dyn(user)) != map`, `true`},
		{"a choice may be null", `(svcPublic.flag ? null : user) == null`, `true`},
		{"a choice that is null has no fields", `(svcPublic.flag ? user : null).id + (svcPublic.amount == 0 ? user : null).id`, `the user is null`},
		{"a variable is not converted", `string(dyn(user))`, `no such overload`},
		{"an object is not converted", `string(svcPublic.address)`, `no such overload`},
		{"a list has a type", `type(svcPublic.tags) == list && type(svcPublic) == map`, `true`},

		{"a text function at its edges", `"hello".indexOf("")`, `0`},
		{"a text function at its edges", `"hello".indexOf("", 9)`, `5`},
		{"a text function at its edges", `"hello".indexOf("l", 9)`, `-1`},
		{"a text function at its edges", `"hello".indexOf("l", -1)`, `index out of range: -1`},
		{"a text function at its edges", `"hello".lastIndexOf("")`, `5`},
		{"a text function at its edges", `"hello".lastIndexOf("", 2)`, `2`},
		{"a text function at its edges", `"hello".lastIndexOf("", 9)`, `5`},
		{"a text function at its edges", `"hello".lastIndexOf("o")`, `4`},
		{"a text function at its edges", `"hello".lastIndexOf("l", 2)`, `2`},
		{"a text function at its edges", `"hello".lastIndexOf("lo", 3)`, `3`},
		{"a text function at its edges", `"hello".lastIndexOf("hello!")`, `-1`},
		{"a text function at its edges", `"".lastIndexOf("x")`, `-1`},
		{"a text function at its edges", `"".indexOf("x")`, `-1`},
		{"a text function at its edges", `"hello".lastIndexOf("l", -1)`, `index out of range: -1`},
		{"a text function at its edges", `svcPublic.text.indexOf("e")`, `4`},
		{"a text function at its edges", `svcPublic.amount.indexOf("e")`, `no such overload`},
		{"a text function at its edges", `["a", svcPublic.amount].join(",")`, `join: an element is not a string`},
		{"a text function at its edges", `[].join(",")`, `""`},
		{"a text function at its edges", `"a".replace("", "b", 0)`, `"a"`},
		{"a text function at its edges", `"aaa".replace("a", "b", 9)`, `"bbb"`},
		{"a text function at its edges", `"a,b,".split(",")`, `["a","b",""]`},
		{"a text function at its edges", `"a".charAt(0) + "abc".substring(1, 2)`, `"ab"`},
		{"a text function at its edges", `"a".charAt(5)`, `index out of range: 5`},
	})
}
