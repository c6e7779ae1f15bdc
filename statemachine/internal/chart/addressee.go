package chart

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"

	"troupe/statemachine/data"
)

const MaxMailTo = 100 // addressees of one mail

var errAddressee = errors.New("mail: to is user:NAME, role:NAME, an address, or a list of them")

// Addressees reads a text or a list of texts.
func Addressees(v data.Value) (to []string, err error) {
	list := []data.Value{v}
	if v.Kind() == data.Array {
		list = list[:0]
		for _, item := range v.Elements() {
			list = append(list, item)
		}
	}
	for _, item := range list {
		if item.Kind() != data.String {
			return nil, errAddressee
		}
		text := item.Text()
		if err := checkAddressee(text); err != nil {
			return nil, err
		}
		to = append(to, text)
	}
	if len(to) == 0 || len(to) > MaxMailTo {
		return nil, fmt.Errorf("%w, of one to %d", errAddressee, MaxMailTo)
	}
	return to, nil
}

func checkAddressee(text string) error {
	for _, kind := range []string{"user:", "role:"} {
		if name, ok := strings.CutPrefix(text, kind); ok {
			if name == "" {
				return errAddressee
			}
			return nil
		}
	}
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
		return fmt.Errorf("%w, not %q", errAddressee, data.Shorten(text))
	}
	return nil
}
