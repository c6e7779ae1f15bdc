package load

type script struct {
	scenario *Scenario
	users    []userScript
	content  content
	out      []byte // the last request; reused
	body     []byte // likewise
}

// userScript is what is the same in all requests of a user.
type userScript struct {
	create, event, batch string // request line and headers up to the length of the body
	read, readEnd, query string
}

func newScript(o *Options, c content) *script {
	s := &script{scenario: o.Scenario, content: c}
	for _, u := range o.Scenario.Users {
		token, ok := o.Tokens[u.Name]
		if !ok {
			token = o.Token
		}
		s.users = append(s.users, newUserScript(o, token))
	}
	return s
}

func newUserScript(o *Options, token string) userScript {
	headers := " HTTP/1.1\r\nHost: " + o.Host + "\r\n"
	if token != "" {
		headers += "Authorization: svc.token " + token + "\r\n"
	}
	if o.Minimal {
		headers += "Prefer: return=minimal\r\n"
	}
	const json = "Content-Type: application/json\r\nContent-Length: "
	root, id := o.BasePath+"/workflow/api/v1/", o.Scenario.WorkflowID
	return userScript{
		create:  "POST " + root + "create" + headers + json,
		event:   "POST " + root + "event" + headers + json,
		batch:   "POST " + root + "events" + headers + json,
		read:    "GET " + root + "instance/" + id + "/",
		readEnd: headers + "\r\n",
		query:   "GET " + root + "instances/" + id + "?" + o.Scenario.query + headers + "\r\n",
	}
}

// create returns a request for a new instance. Like all results of a script it is good until the next one.
func (s *script) create() []byte {
	s.body = append(s.body[:0], `{"workflowId":"`...)
	s.body = append(s.body, s.scenario.WorkflowID...)
	s.body = append(s.body, '"')
	if len(s.scenario.create) > 0 {
		s.body = append(s.body, `,"data":`...)
		s.body = s.scenario.create.append(s.body, &s.content)
	}
	s.body = append(s.body, '}')
	return s.post(s.users[s.scenario.creator].create)
}

func (s *script) event(instance string, t *step) []byte {
	s.body = s.appendEvent(s.body[:0], instance, t)
	return s.post(s.users[t.user].event)
}

func (s *script) appendEvent(dst []byte, instance string, t *step) []byte {
	dst = append(dst, `{"workflowId":"`...)
	dst = append(dst, s.scenario.WorkflowID...)
	dst = append(dst, `","instanceId":"`...)
	dst = append(dst, instance...)
	dst = append(dst, `","event":{"name":"`...)
	dst = append(dst, t.event...)
	dst = append(dst, '"')
	if len(t.data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = t.data.append(dst, &s.content)
	}
	return append(dst, `}}`...)
}

// beginBatch, then addToBatch for each event, and then endBatch, which returns the request of a user.
func (s *script) beginBatch() { s.body = append(s.body[:0], '[') }

func (s *script) addToBatch(instance string, t *step) {
	if len(s.body) > 1 {
		s.body = append(s.body, ',')
	}
	s.body = s.appendEvent(s.body, instance, t)
}

func (s *script) endBatch(user int) []byte {
	s.body = append(s.body, ']')
	return s.post(s.users[user].batch)
}

func (s *script) post(head string) []byte {
	s.out = append(s.out[:0], head...)
	s.out = appendLength(s.out, len(s.body))
	s.out = append(s.out, "\r\n\r\n"...)
	s.out = append(s.out, s.body...)
	return s.out
}

func (s *script) read(instance string) []byte {
	u := &s.users[s.scenario.creator]
	s.out = append(s.out[:0], u.read...)
	s.out = append(s.out, instance...)
	s.out = append(s.out, u.readEnd...)
	return s.out
}

func (s *script) query() []byte {
	s.out = append(s.out[:0], s.users[s.scenario.creator].query...)
	return s.out
}
