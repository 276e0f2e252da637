package fleet

import (
	"encoding/json"
	"fmt"
)

// AuditLog is the path of the file to which the API server writes the calls of the users in ClusterOptions.Audit: an
// event of audit.k8s.io/v1 per line, with all of a call except for the bodies. It exists until the fleet stops.
func (c *Cluster) AuditLog() string { return c.file("audit.log") }

// auditPolicy makes the API server log the calls of users, and no others.
func auditPolicy(users []string) ([]byte, error) {
	rules := []map[string]any{{"level": "None"}}
	if len(users) > 0 {
		rules = append([]map[string]any{{"level": "Metadata", "users": users, "omitStages": []string{"RequestReceived"}}}, rules...)
	}
	policy, err := json.Marshal(map[string]any{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})
	if err != nil {
		return nil, fmt.Errorf("writing the policy of the audit log: %w", err)
	}
	return policy, nil
}
