# frozen_string_literal: true

Rails.application.routes.draw do
  get '/sleep', to: 'sleep#show'
  match '(*anything)', to: 'sleep#nothing', via: :all
end
