package expr

import (
	"fmt"
	"testing"
)

// TestConstants holds what const.name means: the value of the definition, with its
// type, wherever the word stands.
func TestConstants(t *testing.T) {
	env, err := newEnv(t).WithConstants(mustData(t, `{"limit":1000,"rate":1.5,"name":"x","on":true,"nothing":null,`+
		`"huge":123456789012345678901234567890,"list":[1,2,3],"mixed":[1,"a",[2.5]],"rates":{"de":19,"at":20},"deep":{"a":{"b":[1.0]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := sample(t)
	for _, c := range []struct{ src, want string }{
		{`const.limit`, `1000`},
		{`const.limit * 2`, `2000`},
		{`svcPublic.amount <= const.limit`, `false`},
		{`const.rate * const.limit`, `1500`},
		{`const.name + "!"`, `"x!"`},
		{`const.on ? 1 : 2`, `1`},
		{`const.nothing == null`, `true`},
		{`const.huge`, `123456789012345678901234567890`},
		{`const.list`, `[1,2,3]`},
		{`const.list.map(x, x + const.limit)`, `[1001,1002,1003]`},
		{`2 in const.list`, `true`},
		{`const.mixed`, `[1,"a",[2.5]]`},
		{`const.rates.de + const.rates["at"]`, `39`},
		{`const.rates`, `{"de":19,"at":20}`},
		{`[const.rates]`, `[{"at":20,"de":19}]`},
		{`const.deep.a.b[0] == 1`, `true`},
		{`const . limit`, `1000`},
		{`"const.limit" + 'const'`, `"const.limitconst"`},
		{`r"\" + string(const.limit)`, `"\\1000"`},
		{`"\"" + string(const.limit)`, `"\"1000"`},
		{`"""const " const""" + const.name`, `"const \" constx"`},
		{"1 // const\n + const.limit", `1001`},
		{`{"const": const.limit}`, `{"const":1000}`},
		{`{"const": 5}.const`, `5`},
		{`event.data.?const.orValue(const.limit)`, `1000`},
		// The types are those of the values.
		{`const.limit + "x"`, `compile: 1:13: found no matching overload for '+' applied to '(int, string)'`},
		{`const.list + ["a"]`, `compile: 1:12: found no matching overload for '+' applied to '(list(int), list(string))'`},
		{`const.limits`, `compile: 1:6: undeclared reference to 'const.limits' (did you mean 'const.limit'?)`},
		{`const`, `compile: 1:1: undeclared reference to 'const'`},
		{`const.limit + c0000`, `compile: 1:15: undeclared reference to 'c0000'`},
		{`[1].all(const, const > 0)`, `compile: 1:16: undeclared reference to 'const'`},
	} {
		if got := outcome(t, env, c.src, s); got != c.want {
			t.Errorf("%s: got %s, want %s", c.src, got, c.want)
		}
	}
	if got := outcome(t, newEnv(t), `const.limit`, s); got != "compile: 1:1: reserved identifier: const" {
		t.Errorf("without constants: got %s", got)
	}
	for _, wrong := range []string{`{"a b":1}`, `{"in":1}`, `{"const":1}`, `{"":1}`} {
		if _, err := newEnv(t).WithConstants(mustData(t, wrong)); err == nil {
			t.Errorf("%s: taken as constants", wrong)
		}
	}
}

// TestPrivateMembers: what an expression reads of svcPrivate, for the loader.
func TestPrivateMembers(t *testing.T) {
	env := newEnv(t)
	for _, c := range []struct {
		src, want string
		all       bool
	}{
		{`svcPrivate.a > svcPrivate.b.c && svcPrivate.a < 9`, "[a b]", false},
		{`has(svcPrivate.a) && svcPrivate["b"] == svcPrivate.?c.orValue(1) && svcPrivate[?"d"].hasValue()`, "[a b c d]", false},
		{`svcPublic.svcPrivate == "svcPrivate"`, "[]", false},
		{`svcPrivate[svcPublic.name] == svcPrivate.a`, "[a]", true},
		{`svcPublic.items.exists(i, i in svcPrivate)`, "[]", true},
	} {
		p, err := env.Compile(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if members, all := p.PrivateMembers(); fmt.Sprint(members) != c.want || all != c.all {
			t.Errorf("%s: got %v, %v, want %s, %v", c.src, members, all, c.want, c.all)
		}
	}
}
