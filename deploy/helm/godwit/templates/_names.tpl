{{- define "godwit.name" -}}
{{- if contains "godwit" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-godwit{{ end }}
{{- end }}

{{- define "godwit.selector" -}}
app.kubernetes.io/name: godwit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "godwit.labels" -}}
{{ include "godwit.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "godwit.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "godwit.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "godwit.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}
