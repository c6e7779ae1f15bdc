package key

import "slices"

// Job is a job of an instance as keys name it.
type Job struct {
	ID       ID
	Sequence uint64
	Number   uint32
}

// The kinds of rows of a job: what it is or how it has ended, and who has it or may get it.
const (
	JobRow   byte = 'j'
	JobOffer byte = 'o'
)

// Key appends the key of the JobRow of a job.
func (j Job) Key(dst []byte, sh Shard) []byte {
	return j.appendEnd(JobsPrefix(slices.Grow(dst, jobKeyBytes), sh, JobRow))
}

// jobKeyBytes is how long a key is that Job.Key appends.
const jobKeyBytes = 3 + 1 + 16 + 8 + 4

func (j Job) appendEnd(dst []byte) []byte {
	return appendPart(append(dst, j.ID[:]...), j.Sequence, j.Number)
}

// JobsPrefix appends the prefix of all rows of a kind in sh, in the order of the instances; offers are in that of Offer.
func JobsPrefix(dst []byte, sh Shard, kind byte) []byte {
	return append(appendHead(dst, sh, jobTable), kind)
}

// OffersPrefix appends the prefix of the offers of a type in sh.
func OffersPrefix(dst []byte, sh Shard, typ string) []byte {
	return appendText(JobsPrefix(dst, sh, JobOffer), typ)
}

// Offer is a job that somebody has or may get: those of a type with the highest priority first, from 255 down, and of these workflow after workflow,
// and the oldest first. Created is in Unix milliseconds, 0 or later.
type Offer struct {
	Type     string
	Priority uint8
	Workflow string
	Created  int64
	Job
}

// Key appends the key of an offer.
func (o *Offer) Key(dst []byte, sh Shard) []byte {
	dst = slices.Grow(dst, jobKeyBytes+15+len(o.Type)+len(o.Workflow)) // NB: with two lengths, the priority and the time
	return o.appendEnd(appendPlace(OfferPrefix(dst, sh, o.Type, o.Priority, o.Workflow), o.Created))
}

// OfferPrefix appends the prefix of the offers of one type, priority and workflow in sh.
func OfferPrefix(dst []byte, sh Shard, typ string, priority uint8, workflow string) []byte {
	return appendText(append(OffersPrefix(dst, sh, typ), ^priority), workflow)
}

// ParseJob returns the job of the key of a JobRow.
func ParseJob(key []byte) (j Job, ok bool) {
	p := parser{rest: key}
	ok = p.head(jobTable) && p.byte() == JobRow
	j = Job{ID: p.id(), Sequence: p.uint64(), Number: p.uint32()}
	return j, ok && p.done()
}

// ParseOffer returns an offer's key taken apart.
func ParseOffer(key []byte) (o Offer, ok bool) {
	p := parser{rest: key}
	ok = p.head(jobTable) && p.byte() == JobOffer
	o.Type, o.Priority, o.Workflow = p.text(), ^p.byte(), p.text()
	o.Created, o.ID, o.Sequence, o.Number = int64(p.uint64()), p.id(), p.uint64(), p.uint32()
	return o, ok && p.done() && o.Created >= 0
}

// jobPrefix is the prefix of each JobRow of an instance.
func jobPrefix(sh Shard, id ID) []byte { return append(JobsPrefix(nil, sh, JobRow), id[:]...) }

// job reads the parts of a row of a job behind its table.
func (p *parser) job(k *Parts) {
	if k.Kind = p.byte(); k.Kind == JobOffer {
		k.Name, k.Order, k.Workflow, k.Due = p.text(), ^p.byte(), p.text(), int64(p.uint64())
	}
	k.ID, k.Number, k.Place = p.id(), p.uint64(), p.uint32()
	p.bad = p.bad || k.Due < 0 || k.Kind != JobRow && k.Kind != JobOffer
}
