package scxml

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWhatTheSuitesAskInAnotherWay has what files of the W3C test that cannot be expressed as they are written.
func TestWhatTheSuitesAskInAnotherWay(t *testing.T) {
	child := `<scxml version="1.0"><final id="end"/></scxml>`
	for sentence, c := range map[string]struct{ text, beside string }{
		// Test 216: the document is named beforehand, since it has to be imported.
		"216: srcexpr is evaluated when the invoke is": {`<scxml initial="s0" datamodel="ecmascript"><datamodel><data id="Var1" expr="'foo'"/></datamodel>
			<state id="s0">
				<onentry><send event="timeout" delay="5s"/><assign location="Var1" expr="'file:sub1.scxml'"/></onentry>
				<invoke srcexpr="Var1" type="http://www.w3.org/TR/scxml"/>
				<transition event="done.invoke" target="pass"/><transition event="*" target="fail"/>
			</state><final id="pass"/><final id="fail"/></scxml>`, child},
		// Test 224: startsWith is written as such.
		"224: an id that is made begins with that of its state": {`<scxml initial="s0" datamodel="ecmascript"><datamodel><data id="Var1"/><data id="Var2" expr="'s0.'"/></datamodel>
			<state id="s0"><onentry><send event="timeout" delay="1s"/></onentry>
				<invoke type="http://www.w3.org/TR/scxml/" idlocation="Var1"><content>` + child + `</content></invoke>
				<transition event="*" target="s1"/></state>
			<state id="s1"><transition cond="Var1.startsWith(Var2)" target="pass"/><transition target="fail"/></state>
			<final id="pass"/><final id="fail"/></scxml>`, ""},
		"variables of CEL": {`<scxml initial="s0" datamodel="cel"><datamodel><data id="n" expr="0"/><data id="list">[3, 4]</data></datamodel>
			<state id="s0"><onentry><foreach array="list" item="x"><assign location="n" expr="n + x"/></foreach></onentry>
				<transition cond="n == 7 &amp;&amp; list.exists(n, n == 4) &amp;&amp; !list.exists(x, x == n)" target="pass"/><transition target="fail"/></state>
			<final id="pass"/><final id="fail"/></scxml>`, ""},
	} {
		read := func(name string) ([]byte, error) {
			if c.beside == "" || name != "sub1.scxml" {
				return nil, fs.ErrNotExist
			}
			return []byte(c.beside), nil
		}
		files, err := Import("w.scxml", []byte(c.text), read)
		if !assert.NoError(t, err, sentence) {
			continue
		}
		st, err := newStage(files)
		if !assert.NoError(t, err, sentence) {
			continue
		}
		st.load = read
		assert.NoError(t, st.playVerdict("w"), sentence)
	}
}
