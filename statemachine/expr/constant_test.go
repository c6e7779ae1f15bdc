package expr

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConstants holds what const.name means: the value of the definition, with its
// type, wherever the word stands.
func TestConstants(t *testing.T) {
	env, err := newEnv(t).WithConstants(mustData(t, `{"limit":1000,"rate":1.5,"name":"x","on":true,"nothing":null,`+
		`"huge":123456789012345678901234567890,"list":[1,2,3],"mixed":[1,"a",[2.5]],"rates":{"de":19,"at":20},"deep":{"a":{"b":[1.0]}}}`))
	require.NoError(t, err)
	s := sample(t)
	hold(t, env, s, []expression{
		{"a constant", `const.limit`, `1000`},
		{"a constant", `const.limit * 2`, `2000`},
		{"a constant", `svcPublic.amount <= const.limit`, `false`},
		{"a constant", `const.rate * const.limit`, `1500`},
		{"a constant", `const.name + "!"`, `"x!"`},
		{"a constant", `const.on ? 1 : 2`, `1`},
		{"a constant", `const.nothing == null`, `true`},
		{"a constant", `const.huge`, `123456789012345678901234567890`},
		{"a constant", `const.list`, `[1,2,3]`},
		{"a constant", `const.list.map(x, x + const.limit)`, `[1001,1002,1003]`},
		{"a constant", `2 in const.list`, `true`},
		{"a constant", `const.mixed`, `[1,"a",[2.5]]`},
		{"a constant", `const.rates.de + const.rates["at"]`, `39`},
		{"a constant", `const.rates`, `{"de":19,"at":20}`},
		{"a constant", `[const.rates]`, `[{"at":20,"de":19}]`},
		{"a constant", `const.deep.a.b[0] == 1`, `true`},
		{"a constant", `const . limit`, `1000`},
		{"a constant", `"const.limit" + 'const'`, `"const.limitconst"`},
		{"a constant", `r"\" + string(const.limit)`, `"\\1000"`},
		{"a constant", `"\"" + string(const.limit)`, `"\"1000"`},
		{"a constant", `"""const " const""" + const.name`, `"const \" constx"`},
		{"a constant", "1 // const\n + const.limit", `1001`},
		{"a constant", `{"const": const.limit}`, `{"const":1000}`},
		{"a constant", `{"const": 5}.const`, `5`},
		{"a constant", `event.data.?const.orValue(const.limit)`, `1000`},
		// The types are those of the values.
		{"a constant", `const.limit + "x"`, `compile: 1:13: found no matching overload for '+' applied to '(int, string)'`},
		{"a constant", `const.list + ["a"]`, `compile: 1:12: found no matching overload for '+' applied to '(list(int), list(string))'`},
		{"a constant", `const.limits`, `compile: 1:6: undeclared reference to 'const.limits' (did you mean 'const.limit'?)`},
		{"a constant", `const`, `compile: 1:1: undeclared reference to 'const'`},
		{"a constant", `const.limit + c0000`, `compile: 1:15: undeclared reference to 'c0000'`},
		{"a constant", `[1].all(const, const > 0)`, `compile: 1:16: undeclared reference to 'const'`},
	})
	assert.Equal(t, "compile: 1:1: reserved identifier: const", outcome(t, newEnv(t), `const.limit`, s), "without constants")
	for _, wrong := range []string{`{"a b":1}`, `{"in":1}`, `{"const":1}`, `{"":1}`} {
		_, err := newEnv(t).WithConstants(mustData(t, wrong))
		assert.Error(t, err, "%s: taken as constants", wrong)
	}
}

// TestNames: what an expression names of svcPrivate, and which nodes, for the loader.
func TestNames(t *testing.T) {
	env := newEnv(t)
	for _, c := range []struct {
		src, nodes, members string
		all                 bool
	}{
		{`In("a.b") || In(user.id) || [1].all(x, In("c"))`, "[a.b c]", "[]", false},
		{`svcPrivate.a > svcPrivate.b.c && svcPrivate.a < 9`, "[]", "[a b]", false},
		{`has(svcPrivate.a) && svcPrivate["b"] == svcPrivate.?c.orValue(1) && svcPrivate[?"d"].hasValue()`, "[]", "[a b c d]", false},
		{`svcPublic.svcPrivate == "svcPrivate"`, "[]", "[]", false},
		{`svcPrivate[svcPublic.name] == svcPrivate.a`, "[]", "[a]", true},
		{`svcPublic.items.exists(i, i in svcPrivate)`, "[]", "[]", true},
	} {
		p, err := env.Compile(c.src)
		if !assert.NoError(t, err, c.src) {
			continue
		}
		members, all := p.PrivateMembers()
		nodes := p.Nodes()
		assert.True(t, fmt.Sprint(nodes) == c.nodes && fmt.Sprint(members) == c.members && all == c.all,
			"%s: got %v, %v, %v, want %s, %s, %v", c.src, nodes, members, all, c.nodes, c.members, c.all)
	}
}
