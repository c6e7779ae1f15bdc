package statemachine_test

import (
	"fmt"
	"time"

	"troupe/statemachine"
	"troupe/statemachine/data"
)

// An order is created, and approved by a manager because it is below the limit.
func Example() {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		panic(err)
	}
	order, err := parser.Parse(statemachine.Source{File: "order.yaml", Text: []byte(`
id: order
version: 1
stateMachines:
  main:
    initial: open
    states:
      open:
        on:
          approve:
            target: approved
            guard: svcPublic.amount <= 1000
            allow: {roles: [manager]}
      approved: {type: final}
`)})
	if err != nil {
		panic(err)
	}
	mary := &statemachine.Caller{ID: "mary", Roles: []string{"manager"}}
	now := time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)
	created, err := order.Create(statemachine.Creation{ID: "1", Caller: mary, Public: data.Value(`{"amount":750}`), Now: now})
	if err != nil {
		panic(err)
	}
	fmt.Println(statemachine.NodeNames(order.Positions(&created.Instance)))

	moved, err := order.Step(&created.Instance, statemachine.Event{Name: "approve", Caller: mary, Now: now.Add(time.Hour)})
	if err != nil {
		panic(err)
	}
	fmt.Println(statemachine.NodeNames(order.Positions(&moved.Instance)), order.IsDone(&moved.Instance))
	// Output:
	// open
	// approved true
}
