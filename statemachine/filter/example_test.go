package filter_test

import (
	"errors"
	"fmt"

	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

func ExampleParse() {
	f, err := filter.Parse([]byte(`{"states.nodeId": "review", "svcPublic.amount": {"$gte": 1000}}`), filter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := func(node, public string) filter.Document {
		return filter.Document{
			States: data.Value(`[{"stateMachineId":"main","nodeId":"` + node + `"}]`),
			Public: data.Value(public),
		}
	}
	fmt.Println(f.Match(at("review", `{"amount":1500}`)))
	fmt.Println(f.Match(at("review", `{"amount":999.99}`)))
	fmt.Println(f.Match(at("paid", `{"amount":1500}`)))

	// An operator that does not exist is refused, never ignored.
	_, err = filter.Parse([]byte(`{"svcPublic.amount": {"$gt_": 1}}`), filter.Options{})
	fmt.Println(errors.Is(err, filter.ErrUnsupported))
	// Output:
	// true
	// false
	// false
	// true
}
