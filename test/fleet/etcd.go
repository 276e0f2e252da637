package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// PutsInEachTransaction is the number of objects in one transaction of etcd, which accepts 128.
const PutsInEachTransaction = 100

// Record is an object as etcd has it.
type Record struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Put is the part of a transaction that writes a record.
func (r Record) Put() map[string]any { return map[string]any{"request_put": r} }

// CallEtcd calls a method of etcd's store, such as range, through its gateway for JSON. The bodies follow etcd's API
// reference, version 3: bytes are in base64.
func CallEtcd(ctx context.Context, url, method string, body, answer any) error {
	return callEtcd(ctx, url, "kv/"+method, body, answer)
}

func callEtcd(ctx context.Context, url, method string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/"+method, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("etcd, %s: %w", method, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, content)
	}
	if err == nil {
		err = json.Unmarshal(content, answer)
	}
	if err != nil {
		return fmt.Errorf("etcd, %s: %w", method, err)
	}
	return nil
}

// Backup has all objects of an API server at one moment.
type Backup struct{ records []Record }

// Backup reads all stored objects of the cluster's API server.
func (c *Cluster) Backup(ctx context.Context) (Backup, error) {
	first, last := c.storedKeys()
	var found struct{ Kvs []Record }
	err := CallEtcd(ctx, c.fleet.etcdURL, "range", map[string]any{"key": first, "range_end": last}, &found)
	return Backup{found.Kvs}, err
}

// Restore ends the cluster's API server, replaces all its stored objects by those of the backup, and starts it again.
// Revisions continue, as in a restore that bumps them: a client with an earlier watch sees no time go back.
func (c *Cluster) Restore(ctx context.Context, from Backup) error {
	c.StopServer()
	first, last := c.storedKeys()
	var deleted struct{}
	if err := CallEtcd(ctx, c.fleet.etcdURL, "deleterange", map[string]any{"key": first, "range_end": last}, &deleted); err != nil {
		return err
	}
	for rest := from.records; len(rest) > 0; {
		some := rest[:min(len(rest), PutsInEachTransaction)]
		rest = rest[len(some):]
		puts := make([]map[string]any, len(some))
		for i, one := range some {
			puts[i] = one.Put()
		}
		var answer struct{ Succeeded bool }
		if err := CallEtcd(ctx, c.fleet.etcdURL, "txn", map[string]any{"success": puts}, &answer); err != nil {
			return err
		}
		if !answer.Succeeded {
			return fmt.Errorf("etcd did not take what cluster %q had", c.Name)
		}
	}
	return c.StartServer(ctx)
}

// storedKeys are the first key of the API server's objects, and the first one after all of them.
func (c *Cluster) storedKeys() (first, last []byte) {
	prefix := c.storedUnder()
	return []byte(prefix + "/"), []byte(prefix + string(rune('/'+1)))
}

// FillEtcd writes to the fleet's etcd until it accepts nothing more: no API server of the fleet can write from then
// on. The fleet must have been started with an EtcdQuota.
func (f *Fleet) FillEtcd(ctx context.Context) error {
	ballast := Record{Value: bytes.Repeat([]byte("x"), 1<<20)}
	for i := range f.etcdQuota >> 20 {
		ballast.Key = fmt.Appendf(nil, "ballast-%d", i)
		if err := CallEtcd(ctx, f.etcdURL, "put", ballast, &struct{}{}); err != nil && strings.Contains(err.Error(), "database space exceeded") {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("etcd took more than its quota of %d MiB", f.etcdQuota>>20)
}

// FreeEtcd frees space in etcd again, and clears its alarm.
func (f *Fleet) FreeEtcd(ctx context.Context) error {
	var deleted struct{ Header map[string]any }
	ballast := map[string]any{"key": []byte("ballast-"), "range_end": []byte("ballast.")}
	if err := CallEtcd(ctx, f.etcdURL, "deleterange", ballast, &deleted); err != nil {
		return err
	}
	for _, call := range []struct {
		method string
		body   map[string]any
	}{
		{"kv/compaction", map[string]any{"revision": deleted.Header["revision"], "physical": true}},
		{"maintenance/defragment", map[string]any{}},
		{"maintenance/alarm", map[string]any{"action": "DEACTIVATE", "memberID": deleted.Header["member_id"], "alarm": "NOSPACE"}},
	} {
		if err := callEtcd(ctx, f.etcdURL, call.method, call.body, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}
