package gateway_test

// The definitions that the interface is tested with.

// orderFlow has two machines whose order is not that of the alphabet, and an
// event for each rule about data.
const orderFlow = `
id: order
name: Order "handling"
context:
  svcPublic: {status: new, limits: {low: 1, high: 9}, note: none}
  svcPrivate: {margin: 3, secret: s3}
events:
  ship: {unmatched: reject}
  ping: {unmatched: ignore}
  hide: {into: svcPrivate}
  swap: {apply: replace}
  drop: {apply: none}
  spare: {}
  checked: {data: {type: object, required: [comment], properties: {comment: {type: string}}}}
stateMachines:
  review:
    initial: draft
    on:
      note:
      hide:
      swap:
      drop:
      checked:
      into: {into: svcPrivate}
      over: {into: svcPrivate, apply: replace}
      set: {actions: [{assign: {svcPublic.by: '${user.id}', svcPublic.plain: user.id}}]}
      cheap: {guard: 'event.data.amount <= svcPublic.limits.high', actions: [{assign: {svcPublic.cheap: true}}]}
      boom: {actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}
    states:
      draft: {on: {submit: pending, leap: {target: middle, actions: [{raise: hop}]}}}
      middle: {on: {hop: far}}
      far: {always: pending}
      pending: {on: {approve: {target: approved, allow: {roles: [approver]}}, reject: draft, ship: approved, ping: draft}}
      approved: {type: final}
  billing:
    initial: unpaid
    states:
      unpaid: {on: {pay: paid}}
      paid: {type: final}
`

// boundFlow says what its creators may set, and takes its comments in every state.
const boundFlow = `
id: bound
const: {limit: 10}
context: {svcPublic: {n: 1, kind: plain}, svcPrivate: {owner: nobody}}
create:
  svcPublic: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
  svcPrivate: false
events:
  comment: {unmatched: apply, allow: {roles: [approver]}}
stateMachines:
  main:
    initial: open
    states:
      open:
        on:
          close:
            - {guard: 'svcPublic.n <= const.limit', target: small, actions: [{redirect: /small}]}
            - {target: large, actions: [{assign: {svcPublic.limit: '${const.limit}'}}]}
      small: {on: {note: {}}}
      large: {type: final}
`

// codesFlow is JSON, with machines against the order of the alphabet.
const codesFlow = `{
  "id": "codes", "name": "Codes",
  "stateMachines": {
    "zeta":  {"initial": "z1", "states": {"z1": {"on": {"next": "z2"}}, "z2": {"type": "final"}}},
    "alpha": {"initial": "a1", "states": {"a1": {"on": {"next": "a2"}}, "a2": {"type": "final"}}},
    "mid":   {"initial": "m1", "states": {"m1": {"on": {"other": "m2"}}, "m2": {"type": "final"}}}
  }
}`

// guideFlow sets svcRedirect at creation and takes it away again.
const guideFlow = `
id: guide
stateMachines:
  main:
    initial: hall
    states:
      hall: {entry: [{redirect: '${"/rooms/" + instance.id}'}], on: {leave: {target: street, actions: [{redirect: null}]}}}
      street: {type: final}
`

// vaultFlow is for some only.
const vaultFlow = `
id: vault
allow:
  create: {roles: [clerk]}
  read: {roles: [clerk, approver]}
  send: {roles: [clerk], deny: {users: [adm]}}
stateMachines: {main: {initial: shut, states: {shut: {on: {open: open}}, open: {on: {shut: shut}}}}}
`

// mineFlow shows an instance to its owner only.
const mineFlow = `
id: mine
allow: {read: {when: 'user.id == svcPublic.owner'}}
stateMachines: {main: {initial: kept, states: {kept: {on: {give: {}}}}}}
`

// smallFlow lets somebody create only what is small, by user and privilege.
const smallFlow = `
id: small
allow:
  create: {users: [ann], privileges: [mod-workflows], when: 'svcPublic.size < 10'}
stateMachines: {main: {initial: here, states: {here: {on: {go: {}}}}}}
`

// rejectFlow and ignoreFlow choose what becomes of unmatched events, for all
// events but one.
const (
	rejectFlow = `
id: rejecting
unmatched: reject
events: {noted: {unmatched: record}}
stateMachines: {main: {initial: a, states: {a: {on: {go: b}}, b: {on: {back: a, noted: a}}}}}
`
	ignoreFlow = `
id: ignoring
unmatched: ignore
stateMachines: {main: {initial: a, states: {a: {on: {go: b}}, b: {on: {back: a}}}}}
`
)

// nestedFlow has compound and parallel nodes.
const nestedFlow = `
id: nested
stateMachines:
  main:
    initial: outer
    states:
      outer: {initial: inner, states: {inner: {on: {deeper: twin}}, twin: {type: parallel, states: {
        right: {initial: r1, states: {r1: {on: {r: r2}}, r2: {type: final}}},
        left: {initial: l1, states: {l1: {on: {l: l2}}, l2: {type: final}}}}}}, on: {end: over}}
      over: {type: final}
`

// plainFlow takes any data; its events are those of the load as well.
const plainFlow = `
id: plain
events: {note: {private: true}}
stateMachines: {main: {initial: a, states: {a: {on: {go: b, note: {}}}, b: {on: {go: a, note: {}}}}}}
`

// stockFlow has indexes. Its events take any data.
const stockFlow = `
id: stock
indexes: [svcPublic.batch, svcPublic.n, svcPublic.i, svcPrivate.cost]
stateMachines: {main: {initial: here, states: {here: {on: {take: away, note: {}}}, away: {on: {bring: here}}}}}
`

// deskFlow has guards of each kind, a right and a schema.
const deskFlow = `
id: desk
events:
  decide: {data: {type: object, required: [ok], properties: {ok: {type: boolean}}}}
  note:
stateMachines:
  main:
    initial: open
    states:
      open:
        on:
          decide: {target: done, allow: {roles: [approver]}}
          raise: {guard: 'svcPublic.level > 1', target: high}
          weigh: {guard: 'event.data.weight > 3', target: done}
          close: done
      high: {on: {close: done}}
      done: {type: final}
`

// flows are the files of the home that the interface is tested with.
func flows() map[string]string {
	return map[string]string{
		"workflows/order.yaml":  orderFlow,
		"workflows/codes.json":  codesFlow,
		"workflows/guide.yaml":  guideFlow,
		"workflows/vault.yaml":  vaultFlow,
		"workflows/mine.yaml":   mineFlow,
		"workflows/small.yaml":  smallFlow,
		"workflows/reject.yaml": rejectFlow,
		"workflows/ignore.yaml": ignoreFlow,
		"workflows/nested.yaml": nestedFlow,
		"workflows/plain.yaml":  plainFlow,
		"workflows/stock.yaml":  stockFlow,
		"workflows/desk.yaml":   deskFlow,
		"workflows/bound.yaml":  boundFlow,
	}
}
