package fleet

import (
	"encoding/json"
	"fmt"
)

// AuditLog is the path of the file in which the API server notes the calls of the users in ClusterOptions.Audit: an event of
// audit.k8s.io/v1 a line, with all of a call but what was sent and answered. It is there until the fleet stops.
func (c *Cluster) AuditLog() string { return c.file("audit.log") }

// auditPolicy has the calls of users noted, and of nobody else.
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
