package statemachine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWarningsForAuthors: each is told with its place, and what is meant is not.
func TestWarningsForAuthors(t *testing.T) {
	p := newParser(t)
	const chart = "stateMachines: {m: {initial: a, states: {a: {on: {go: {target: b}}}, b: {on: {back: a}}}}}\n"
	closed := "create: {svcPublic: {properties: {amount: {type: number}}, additionalProperties: false}, svcPrivate: false}\nevents: {go: {apply: none}, back: {data: {properties: {note: {type: string}}, additionalProperties: false}}}\n"
	reads := func(text string) string {
		return "stateMachines: {m: {initial: a, states: {a: {on: {go: {guard: '" + text + "', target: b}}}, b: {on: {back: a}}}}}\n"
	}
	two := func(first, second string) string {
		return "stateMachines: {m: {initial: a, states: {a: {on: {" + first + ": b}}, b: {on: {" + second + ": a}}}}}\n"
	}
	after := func(text string) string {
		return "stateMachines: {m: {initial: a, states: {a: {after: {'${" + text + "}': b}}, b: {type: final}}}}\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{
			"a role that creates and cannot read, with a condition", "id: w\nallow: {create: {roles: [employee, manager]}, read: {roles: [manager], when: 'user.id == svcPublic.requester'}}\n" + chart,
			`w.yaml:2:53: the role "employee" may create instances and cannot read them (the lists and when must both hold: give when alone, with "manager" in user.roles || … inside)`,
		},
		{
			"everybody creates", "id: w\nallow: {read: {roles: [manager]}}\n" + chart,
			`w.yaml:2:15: everybody else may create instances and cannot read them (name them here too)`,
		},
		{"all who create read", "id: w\nallow: {create: {roles: [employee]}, read: {roles: [employee, manager]}}\n" + chart, ""},
		{"a condition alone", "id: w\nallow: {create: {roles: [employee]}, read: {when: 'user.id == svcPublic.requester'}}\n" + chart, ""},
		{
			"a path that nothing sets", "id: w\n" + closed + reads("svcPublic.total > 5 || has(svcPrivate.limit)"),
			"w.yaml:4:63: svcPublic.total is read, and nothing sets it\nw.yaml:4:63: svcPrivate.limit is read, and nothing sets it",
		},
		{"paths that create, an event and a default set", "id: w\ncontext: {svcPublic: {kind: x}}\n" + closed + reads("svcPublic.amount > 5 || svcPublic.note == svcPublic.kind"), ""},
		{
			"a path that an action sets", "id: w\n" + closed +
				"stateMachines: {m: {initial: a, states: {a: {entry: [{assign: {svcPublic.by.whom: '${user.id}'}}], on: {go: {guard: 'svcPublic.by.whom == user.id', target: b}}}, b: {on: {back: a}}}}}\n", "",
		},
		{"what an event may bring", "id: w\ncreate: {svcPublic: false}\n" + reads("svcPublic.total > 5"), ""},
		{
			"a slip where anything may come in", "id: w\ncontext: {svcPublic: {amount: 1}}\n" + reads("svcPublic.amout > 5"),
			`w.yaml:3:63: svcPublic.amout is read, and nothing sets it (did you mean "svcPublic.amount"?)`,
		},
		{
			"a delay that is a plain text", "id: w\nschema: {svcPublic: {properties: {due: {type: string}}}}\n" + after("svcPublic.due"),
			`w.yaml:3:54: the delay is svcPublic.due, which a schema calls a plain text (format: date-time or duration in the schema, or a number of milliseconds)`,
		},
		{
			"a date without a time", "id: w\ncreate: {svcPublic: {properties: {due: {type: string, format: date}}}}\n" + after("svcPublic.due"),
			`w.yaml:3:54: the delay is svcPublic.due, a date without a time ('${svcPublic.due + "T00:00:00Z"}')`,
		},
		{
			"a default that is no time", "id: w\ncontext: {svcPublic: {due: soon}}\n" + after("svcPublic.due"),
			`w.yaml:3:54: the delay is svcPublic.due, whose default "soon" is neither a time nor a duration (2026-12-24T18:00:00Z, P2D or a number of milliseconds)`,
		},
		{"a time", "id: w\ncontext: {svcPublic: {due: P2D}}\ncreate: {svcPublic: {properties: {due: {type: string, format: date-time}}}}\n" + after("svcPublic.due"), ""},
		{
			"misspelt keywords of a schema", "id: w\nevents: {go: {data: {type: object, properties: {n: {typ: integer}, typ: {type: string, minLenght: 2}}, additionalPropertys: false}}}\n" + chart,
			`w.yaml:2:53: JSON Schema has no keyword "typ": it does nothing (did you mean "type"?)` + "\n" +
				`w.yaml:2:88: JSON Schema has no keyword "minLenght": it does nothing (did you mean "minLength"?)` + "\n" +
				`w.yaml:2:104: JSON Schema has no keyword "additionalPropertys": it does nothing (did you mean "additionalProperties"?)`,
		},
		{
			"a misspelt keyword in a choice of what creators set", "id: w\ncreate: {svcPublic: {properties: {n: {oneOf: [{const: a}, {titel: b, const: b}]}}}}\n" + chart,
			`w.yaml:2:60: JSON Schema has no keyword "titel": it does nothing (did you mean "title"?)`,
		},
		{
			"keywords of others, names and values that look like keywords", "id: w\nevents: {go: {data: {x-typ: 1, 'ui:typ': 2, wholly: 3, properties: {typ: {enum: [{typ: 1}], default: {typ: 1}, examples: [{typ: 2}], const: {typ: 1}}}}}}\n" + chart, "",
		},
		{
			"an event that is a slip of a declared one", "id: w\nevents: {approve: {}}\n" + two("approve", "aprove"),
			`w.yaml:3:74: the event "aprove" stands nowhere else in the file (did you mean "approve"?)`,
		},
		{
			"an event that is a slip of one that others take", "id: w\n" + two("sumbit: a, submit", "submit"),
			`w.yaml:2:51: the event "sumbit" stands nowhere else in the file (did you mean "submit"?)`,
		},
		{"two events that each stand once", "id: w\n" + two("approve", "aprove"), ""},
		{"an event that is declared or raised too", "id: w\nevents: {approve: {}, aprove: {}, remind: {}}\n" + two("approve: {target: b, actions: {raise: remnid}}, remind", "aprove: a, remnid"), ""},
		{"names that are counted, forms of one word, and short ones", "id: w\nevents: {step1: {}, close: {}, go: {}}\n" + two("step1: b, close: b, go", "step2: a, closed: a, no"), ""},
		{"words that are near and another's", "id: w\nevents: {approve: {}, submit: {}}\n" + two("approve: b, submit", "disapprove: a, resubmit"), ""},
		{
			"languages that readers do not ask for", "id: w\ntitle: {deutsch: '${svcPublic.a}', de-AT: A, pt-BR: B, gsw: C}\nevents: {go: {label: {deu: Los, en-GB: Go}, done: {jp: x}}}\n" + chart,
			`w.yaml:2:9: "deutsch" is not the tag of a known language (write one such as "en" or "pt-BR")` + "\n" +
				`w.yaml:3:23: readers ask for the language by its shorter tag, and not for "deu" (did you mean "de"?)` + "\n" +
				`w.yaml:3:52: "jp" is not the tag of a known language (write one such as "en" or "pt-BR")`,
		},
		{"a computed delay", "id: w\nschema: {svcPublic: {properties: {due: {type: string, format: date}}}}\n" + after(`svcPublic.due + "T08:00:00Z"`), ""},
	} {
		parsed, err := p.Parse(Source{File: "w.yaml", Text: []byte(c.text)})
		if !assert.NoError(t, err, c.name) {
			continue
		}
		got := ""
		if len(parsed.Warnings) > 0 {
			got = parsed.Warnings.Error()
		}
		assert.Equal(t, c.want, got, c.name)
	}
}
